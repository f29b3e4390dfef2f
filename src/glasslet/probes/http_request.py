"""The request of an HTTP probe: its URL, its bytes, the target of a redirect. Pure; the rules are the Go kubelet's,
including some surprising ones of Go's URL and header code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

from msgspec import Struct

from glasslet.api.lifecycle import HTTPGetAction, HTTPHeader
from glasslet.probes.answer import USER_AGENT, Unprobeable, join_host_port

_DEFAULT_PORTS = {"http": 80, "https": 443}
_VALID_PATH = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@\[\]/]|%[0-9A-Fa-f]{2})*\Z")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?=/)")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_BAD_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SAFE_IN_PATH = "/$&+,:;=@-_.~"
_WRITTEN_BY_US = ("Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Trailer")

Headers = dict[str, list[str]]
"""By canonical name."""


class ProbeURL(Struct, frozen=True, kw_only=True):
    """`target`: path and query as they stand in the request line."""

    scheme: str
    host: str
    port: int
    target: str
    explicit_port: bool = True

    @property
    def authority(self) -> str:
        """The default of the Host header."""
        if self.explicit_port:
            return join_host_port(self.host, self.port)
        return f"[{self.host}]" if ":" in self.host else self.host

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def probe_url(action: HTTPGetAction, host: str, port: int) -> ProbeURL:
    """The URL of a probe. `host`: the action's own or the pod's IP."""
    return ProbeURL(scheme=(action.scheme or "http").lower(), host=host, port=port, target=request_target(action.path))


def request_target(path: str) -> str:
    """A path as written in a manifest, with query and perhaps escapes, as it stands in the request line. One that does
    not parse as (the rest of) a URL is taken for a plain path, escaped as a whole."""
    rest, _, _ = path.partition("#")
    if (scheme := _SCHEME.match(rest)) is not None:
        rest = rest[scheme.end() :]
    if rest.startswith("//") and (scheme is not None or not rest.startswith("///")):
        # A host in the path is dropped: the host is the pod.
        rest = "/" + rest[2:].partition("/")[2]
    raw, mark, query = rest.partition("?")
    first = raw.partition("/")[0]
    if _CONTROL.search(path) or _BAD_ESCAPE.search(raw) or ":" in first:
        return _absolute(quote(path, safe=_SAFE_IN_PATH))
    if _VALID_PATH.match(raw):
        return _absolute(raw) + mark + query
    return _absolute(quote(unquote_to_bytes(raw), safe=_SAFE_IN_PATH)) + mark + query


def probe_headers(given: Iterable[HTTPHeader]) -> Headers:
    """The headers of a probe. User-Agent and Accept have values that a header of that name replaces and an empty one
    takes away. Raises Unprobeable for headers that must not be sent."""
    headers: Headers = {}
    for header in given:
        if not _TOKEN.match(header.name):
            raise Unprobeable(f'net/http: invalid header field name "{header.name}"')
        if _BAD_VALUE.search(header.value):
            raise Unprobeable(f'net/http: invalid header field value for "{header.name}"')
        headers.setdefault(_canonical(header.name), []).append(header.value.strip(" \t"))
    headers.setdefault("User-Agent", [USER_AGENT])
    if not headers.setdefault("Accept", ["*/*"])[0]:
        del headers["Accept"]
    return headers


def request_bytes(url: ProbeURL, headers: Headers, *, keep_host: bool) -> bytes:
    """The whole request. `keep_host`: the Host header of the probe counts (the first request, relative redirects)."""
    host = (headers.get("Host", [""])[0] if keep_host else "") or url.authority
    lines = [f"GET {url.target} HTTP/1.1", f"Host: {host}"]
    if agent := headers["User-Agent"][0]:
        lines.append(f"User-Agent: {agent}")
    for name in sorted(headers):
        if name not in _WRITTEN_BY_US:
            lines.extend(f"{name}: {value}" for value in headers[name])
    if "Upgrade" not in headers and not any("close" in value.lower() for value in headers.get("Connection", ())):
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def redirected(url: ProbeURL, location: str) -> ProbeURL | None:
    """The URL of a Location header, None if it cannot be parsed."""
    try:
        parts = urlsplit(urljoin(str(url), location.strip()))
        port = parts.port
    except ValueError:
        return None
    if _CONTROL.search(location):
        return None
    target = request_target(parts.path) + (f"?{parts.query}" if parts.query else "")
    return ProbeURL(
        scheme=parts.scheme,
        host=parts.hostname or "",
        port=port if port is not None else _DEFAULT_PORTS.get(parts.scheme, 0),
        target=target,
        explicit_port=port is not None,
    )


def is_relative(location: str) -> bool:
    """Whether a Location names no scheme: then the Host header goes along."""
    return not urlsplit(location.strip()).scheme


def with_referer(headers: Headers, last: ProbeURL, url: ProbeURL) -> Headers:
    """The headers of a redirected request. An HTTPS address is not sent to an HTTP one."""
    if "Referer" in headers or (last.scheme == "https" and url.scheme == "http"):
        return headers
    return {**headers, "Referer": [str(last)]}


def _canonical(name: str) -> str:
    return "-".join(part[:1].upper() + part[1:].lower() for part in name.split("-"))


def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"
