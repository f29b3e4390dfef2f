"""Requests to the runtime as `inspect` shows them: of texts that may come from a Secret only the length. Pure.

A container's environment, command and arguments hold values of Secrets and ConfigMaps once they are resolved. What
stands in the pod's specification as it is, is shown; everything else is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from glasslet.api.container import Container, EphemeralContainer
from glasslet.api.pod import Pod
from glasslet.glass.inspection.plain import plain
from glasslet.runtime.cri._generated.runtime_pb2 import CreateContainerRequest


def hidden(text: object) -> str:
    """The length instead of the text."""
    return f"<{len(str(text))} characters>"


def shown_request(request: object, pod: Pod | None, container: str) -> Any:
    """The request as plain data. `pod` None: nothing of its texts is known to be harmless."""
    tree = plain(request)
    if not isinstance(tree, dict):
        return tree
    if "auth" in tree:
        tree["auth"] = hidden(tree["auth"])
    config = tree.get("config")
    if isinstance(request, CreateContainerRequest) and isinstance(config, dict):
        known = _container(pod, container)
        config["envs"] = _shown_environment(request, known)
        for field in ("command", "args"):
            written = getattr(known, field, ()) or ()
            if field in config:
                config[field] = _as_written(config[field], written)
    return tree


def _shown_environment(
    request: CreateContainerRequest, container: Container | EphemeralContainer | None
) -> list[dict[str, str]]:
    literal = {(one.name, one.value) for one in container.env} if container is not None else set()
    found = []
    for one in request.config.envs:
        value = one.value.decode(errors="replace") if isinstance(one.value, bytes) else one.value
        found.append({"key": one.key, "value": value if (one.key, value) in literal else hidden(value)})
    return found


def _as_written(texts: Iterable[str], written: Iterable[str]) -> list[str]:
    """Words that are as in the specification; of others, which had variables replaced, the length."""
    harmless = set(written)
    return [text if text in harmless else hidden(text) for text in texts]


def _container(pod: Pod | None, name: str) -> Container | EphemeralContainer | None:
    if pod is None:
        return None
    spec = pod.spec
    every: tuple[Container | EphemeralContainer, ...]
    every = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
    return next((one for one in every if one.name == name), None)


def shown_facts(facts: Mapping[str, object], pod: Pod | None, container: str) -> dict[str, Any]:
    """What is known at a place beyond the pod itself."""
    return {
        key: shown_request(value, pod, container) if key == "request" else plain(value) for key, value in facts.items()
    }
