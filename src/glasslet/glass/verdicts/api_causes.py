"""Why the API server does not take a node's requests: the error of the last one as a clause, and what helps. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from glasslet.glass.verdicts.causes import Cause
from glasslet.kubeapi.obstacles import Obstacle, ObstacleKind


class TryResult(StrEnum):
    """The result of a request to the API server, by what it means."""

    GOOD = "good"
    REFUSED = "refused"
    """401 or 403."""
    NO_ANSWER = "no answer"
    """No connection, no answer in time, or 5xx."""
    OTHER = "other"


class LastTry(Struct, frozen=True, kw_only=True):
    """The result of the last request of one kind; `said`: the text of the error; `message`: the server's words in it;
    `code`: the HTTP code, 0 without an answer; `since`: when such requests began to fail."""

    result: TryResult = TryResult.GOOD
    said: str = ""
    message: str = ""
    code: int = 0
    obstacle: Obstacle | None = None
    since: datetime | None = None


GOOD: Final = LastTry()

_ADDRESS: Final = "correct the server in the node's kubeconfig"
_SERVER: Final = f"start the API server if it is down, else {_ADDRESS} or open the firewall"
_CLOCK: Final = "set the node's clock"
_CERTIFICATES: Final[tuple[tuple[str, str], ...]] = (
    (r"not yet valid", f"{_CLOCK}: the certificate's validity has not begun by it"),
    (r"expired", f"renew the API server's certificate (kubeadm certs renew apiserver), or {_CLOCK} if it is wrong"),
    (
        r"not valid for|mismatch",
        "use a name or address of the API server that its certificate has, or set tls-server-name in the kubeconfig",
    ),
    (
        r"self.signed|issuer|unknown|verify",
        "put the CA that signed the API server's certificate into certificate-authority-data of the kubeconfig",
    ),
)
_LOGIN: Final = (
    "give the node new credentials: a client certificate of the cluster's CA, or a token, in its kubeconfig "
    "(with kubeadm: kubeadm join again)"
)
_TAKES_NO_TOKEN: Final = 401
_FORBIDS: Final = 403
_TOO_MANY: Final = 429


def api_cause(tried: LastTry, server: str) -> Cause:
    """What the request met. `server`: the URL of the kubeconfig. The words begin with the API server as the subject."""
    who = f"the API server {server}" if server else "the API server"
    if tried.obstacle is not None:
        return _obstacle(tried.obstacle, who, server)
    # An answer without a body is reported by its number alone.
    said = f": {tried.message}" if tried.message != f"HTTP {tried.code}" and tried.message else ""
    if tried.code == _TAKES_NO_TOKEN:
        return Cause(f"{who} does not accept the node's credentials (401{said})", _LOGIN)
    if tried.code == _FORBIDS:
        return Cause(
            f"{who} forbids it (403{said})",
            "give the user of the node's kubeconfig this right: as system:node:NAME in group system:nodes it has it",
        )
    if tried.code == _TOO_MANY:
        return Cause(f"{who} limits requests (429{said})", "wait; see its flow control (kubectl get flowschemas)")
    if tried.code:
        return Cause(f"{who} answers {tried.code}{said}", "check the API server and its etcd")
    return Cause(f"{who} cannot be reached: {tried.said or 'no answer'}", _SERVER)


def _obstacle(met: Obstacle, who: str, server: str) -> Cause:
    # Only where it differs: a name that was looked up, or a proxy.
    at = f" at {met.address}" if met.address and met.address not in server else ""
    host = re.sub(r"^\w+://|[:/].*$", "", met.address or server)
    detail = f" ({met.detail})" if met.detail else ""
    if met.kind is ObstacleKind.CERTIFICATE:
        fitting = (words for pattern, words in _CERTIFICATES if re.search(pattern, met.detail, re.IGNORECASE))
        step = next(fitting, _ADDRESS)
        return Cause(f"{who} has a certificate that the node does not accept: {met.detail}", step)
    words: Mapping[ObstacleKind, Cause] = {
        ObstacleKind.UNKNOWN_HOST: Cause(
            f"host {host} of {who} is unknown{detail}", f"{_ADDRESS}, or add the host to the node's DNS or /etc/hosts"
        ),
        ObstacleKind.NAME_SERVICE: Cause(
            f"the node's name servers do not resolve host {host} of {who}{detail}",
            "check the name servers in /etc/resolv.conf of the node",
        ),
        ObstacleKind.REFUSED: Cause(f"{who} refuses the connection{at}: no process listens there", _SERVER),
        ObstacleKind.NO_ROUTE: Cause(
            f"there is no way to {who}{at}{detail}", f"check the node's network and routes, or {_ADDRESS}"
        ),
        ObstacleKind.TIMEOUT: Cause(
            f"{who} does not answer in time{at}",
            "check that the API server is not overloaded, and that no firewall drops the node's packets",
        ),
        ObstacleKind.TLS: Cause(f"{who} does not speak TLS as the node does{detail}", _ADDRESS),
        ObstacleKind.CLOSED: Cause(f"{who} closes connections without an answer{at}", _SERVER),
    }
    return words[met.kind]
