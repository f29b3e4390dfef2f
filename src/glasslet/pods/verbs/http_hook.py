"""An HTTP lifecycle hook. Its own module, so that the HTTP client is loaded only where such a hook exists."""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDict

from glasslet.api.lifecycle import HTTPGetAction

USER_AGENT = "kube-lifecycle/1.34"
MAX_REDIRECTS = 10
DRAINED_BYTES = 10 * 1024


async def get(action: HTTPGetAction, *, host: str, port: int) -> bool:
    """Sends the request; any HTTP answer is a success. Follows redirects on the same host. An https hook whose server
    speaks plain http is sent again in the clear, then without the Authorization header; gives
    whether it was. Raises aiohttp.ClientError."""
    scheme = (action.scheme or "HTTP").lower()
    headers = hook_headers(action)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(force_close=True)) as session:
        try:
            await _follow(session, _url(scheme, host, port, action.path), headers)
        except aiohttp.ClientConnectorSSLError:
            if scheme != "https":
                raise
            plain = CIMultiDict((name, value) for name, value in headers.items() if name.lower() != "authorization")
            await _follow(session, _url("http", host, port, action.path), plain)
            return True
    return False


def hook_headers(action: HTTPGetAction) -> CIMultiDict[str]:
    """The headers of the manifest, also repeated ones, and the agent's own that they leave: as for probes, an empty
    User-Agent or Accept means none."""
    headers = CIMultiDict((header.name, header.value) for header in action.http_headers)
    for name, ours in (("User-Agent", USER_AGENT), ("Accept", "*/*")):
        if name not in headers:
            headers[name] = ours
        elif not headers[name]:
            del headers[name]
    return headers


async def _follow(session: aiohttp.ClientSession, url: str, headers: CIMultiDict[str]) -> None:
    first = urlsplit(url).hostname
    ours = ("User-Agent", "Accept")
    for _ in range(MAX_REDIRECTS + 1):
        async with session.get(
            url, headers=headers, allow_redirects=False, ssl=_any_certificate(), skip_auto_headers=ours
        ) as answer:
            await answer.content.read(DRAINED_BYTES)
            place = answer.headers.get("Location")
            if not 300 <= answer.status < 400 or place is None:
                return
            url = str(answer.url.join(type(answer.url)(place)))
            if urlsplit(url).hostname != first:
                return
    raise aiohttp.ClientError(f"stopped after {MAX_REDIRECTS} redirects")


def _any_certificate() -> ssl.SSLContext:
    """Hooks never check the certificate: it is the pod's own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _url(scheme: str, host: str, port: int, path: str) -> str:
    address = f"[{host}]" if ":" in host else host
    return f"{scheme}://{address}:{port}/{path.lstrip('/')}"
