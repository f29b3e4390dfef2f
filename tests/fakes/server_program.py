"""The HTTPS server and the health port over a fake node, as a process: `python -m tests.fakes.server_program FOLDER`.

FOLDER holds `tls.crt`, `tls.key` and `ca.crt`. Prints both port numbers, then serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import sys

import uvloop

from glasslet.concurrency.clock import SystemClock
from glasslet.record.store import Record
from glasslet.server.access.authentication import AuthenticationChain, CertificateAuthenticator
from glasslet.server.access.authorization import AlwaysAllow, RequestAuthorizer
from glasslet.server.healthz import HealthzServer
from glasslet.server.kubelet_server import Bind, KubeletServer, Served
from glasslet.server.protocols import PING
from glasslet.server.request_pipeline import Access
from glasslet.server.routes import RouteSwitches, https_routes, metric_buckets
from glasslet.server.transport.tls import ServingTLS, TLSFiles
from glasslet.server.transport.tls_options import TLSOptions
from tests.fakes.server_sources import FakeNode


async def main(folder: str) -> None:
    clock, node = SystemClock(), FakeNode()
    files = TLSFiles(f"{folder}/tls.crt", f"{folder}/tls.key", f"{folder}/ca.crt")
    ways = [CertificateAuthenticator(clock)]
    server = KubeletServer(
        bind=Bind("127.0.0.1", 0),
        served=Served(
            https_routes(node.sources(), RouteSwitches()), metric_buckets(read_only=False, debugging_handlers=True)
        ),
        metrics=node.metrics.http,
        access=Access(
            AuthenticationChain(ways=ways, anonymous=False),
            RequestAuthorizer(authorizer=AlwaysAllow(), node_name="node-1"),
        ),
        tls=ServingTLS(files=files, options=TLSOptions(), clock=clock),
    )
    await server.start()
    health = HealthzServer(address="127.0.0.1", port=0, checks=(PING,), recorder=Record())
    await health.start()
    print(server.port, health.port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    health.close()
    await server.stop()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
