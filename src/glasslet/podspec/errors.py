"""Errors of pods and containers for which no runtime configuration can be built."""

from __future__ import annotations

SANDBOX_CONFIG = "ConfigPodSandboxError"
CONTAINER_CONFIG = "CreateContainerConfigError"


MAX_MESSAGE = 1024
"""Characters; the message becomes a part of the pod's status and of events, and may quote a field of any length."""


class ConfigError(Exception):
    """The configuration cannot be built. `reason` is what the API shows as waiting reason, `message` its text; the
    message holds names of objects and fields, never values."""

    def __init__(self, reason: str, message: str) -> None:
        if len(message) > MAX_MESSAGE:
            message = f"{message[:MAX_MESSAGE]}... ({len(message)} characters)"
        super().__init__(message)
        self.reason = reason
        self.message = message


def container_error(message: str) -> ConfigError:
    """A container's configuration cannot be built."""
    return ConfigError(CONTAINER_CONFIG, message)


def sandbox_error(message: str) -> ConfigError:
    """A sandbox's configuration cannot be built."""
    return ConfigError(SANDBOX_CONFIG, message)
