"""Where a runtime listens: a path or a unix:// URL."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit


class EndpointError(ValueError):
    """The endpoint is not one this agent can dial; the message names the setting, its value and what is allowed."""


def socket_path(endpoint: str, *, setting: str = "containerRuntimeEndpoint") -> str:
    """The socket's path. `setting` is what to call the value in an error."""
    scheme, separator, _ = endpoint.partition("://")
    if not separator:
        scheme, path = "", endpoint.removeprefix("unix:")
    elif scheme == "unix":
        path = _path_of_url(endpoint, setting)
    else:
        raise EndpointError(_message(setting, endpoint, f'the scheme "{scheme}" is not supported'))
    if not path:
        raise EndpointError(_message(setting, endpoint, "it names no socket"))
    if not path.startswith("/"):
        raise EndpointError(_message(setting, endpoint, f'the path "{path}" is not absolute'))
    if len(path.encode()) > _LONGEST_SOCKET_PATH:
        raise EndpointError(_message(setting, endpoint, f"the path is longer than {_LONGEST_SOCKET_PATH} bytes"))
    return path


_LONGEST_SOCKET_PATH = 107
"""sun_path of Linux less the closing zero."""


def _path_of_url(endpoint: str, setting: str) -> str:
    try:
        parts = urlsplit(endpoint)
    except ValueError as error:
        raise EndpointError(_message(setting, endpoint, str(error))) from error
    if parts.netloc:
        raise EndpointError(_message(setting, endpoint, f'"{parts.netloc}" is read as a host: write three slashes'))
    return unquote(parts.path)


def _message(setting: str, endpoint: str, problem: str) -> str:
    return f'{setting}: invalid value "{endpoint}": {problem}; allowed: a path or unix:///path/to/socket'
