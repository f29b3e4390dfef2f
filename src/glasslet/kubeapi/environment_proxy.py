"""The proxy that the environment names for an address: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as Go programs read them.

Pure.
"""

from __future__ import annotations

import ipaddress
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

_PORTS = {"http": 80, "https": 443}


class BadProxy(ValueError):
    """The variable holds no address of a proxy that can be used. The text never has the address: it may hold a
    password."""


def environment_proxy(url: str, environment: Mapping[str, str]) -> str:
    """The proxy's URL for this URL, "" if it is asked directly. Raises BadProxy."""
    target = urlsplit(url)
    names = (f"{target.scheme.upper()}_PROXY", f"{target.scheme.lower()}_proxy")
    variable = next((name for name in names if environment.get(name)), "")
    if not variable or _is_direct(target.hostname or "", target.port or _PORTS.get(target.scheme, 0), environment):
        return ""
    value = environment[variable]
    proxy = value if "://" in value else f"http://{value}"
    try:
        parts = urlsplit(proxy)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable, parts = False, urlsplit("")
    if not usable:
        raise BadProxy(f"environment variable {variable}: no address of a proxy, want http://HOST:PORT")
    if parts.scheme not in _PORTS:
        raise BadProxy(f"environment variable {variable}: proxies of type {parts.scheme} are not supported, want http")
    return proxy


def proxy_parts(url: str) -> tuple[str | None, dict[str, str]]:
    """A proxy's URL without user and password, and the header that holds these: errors show the URL."""
    parts = urlsplit(url)
    if not parts.username:
        return url or None, {}
    secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return bare, {"Proxy-Authorization": f"Basic {b64encode(secret).decode()}"}


def _is_direct(host: str, port: int, environment: Mapping[str, str]) -> bool:
    """Whether NO_PROXY names the host, or it is this machine."""
    host = host.lower()
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    listed = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    entries = (entry.strip().lower() for entry in listed.split(","))
    return any(_covers(entry, host, port, address) for entry in entries if entry)


def _covers(entry: str, host: str, port: int, address: _Address | None) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, only = _split_port(entry)
    if only is not None and only != port:
        return False
    if (listed := _address(name)) is not None:
        return listed == address
    name = name.removeprefix("*")
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _split_port(entry: str) -> tuple[str, int | None]:
    if entry.startswith("["):
        name, _, port = entry[1:].partition("]")
        port = port.removeprefix(":")
    elif entry.count(":") == 1:
        name, _, port = entry.partition(":")
    else:
        name, port = entry, ""
    return name, int(port) if port.isdigit() and len(port) < 6 else None


def _address(text: str) -> _Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
