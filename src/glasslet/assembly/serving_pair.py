"""The pair for the HTTPS port, begun before anything else is loaded. Imports little, for that reason."""

from __future__ import annotations

from glasslet.config.loading import Loaded
from glasslet.host.machine import node_name
from glasslet.server.transport.serving_certificate import ServingPair


def begin_serving_pair(loaded: Loaded) -> ServingPair:
    """Being made already if this agent will want one of its own. Raises BadTLSFile, ValueError (no node name)."""
    configuration, options = loaded.configuration, loaded.options
    pair = ServingPair(
        certificate=configuration.tls_cert_file,
        key=configuration.tls_private_key_file,
        cert_dir=options.cert_dir,
        host=node_name(options.hostname_override),
    )
    signed_by_cluster = configuration.server_tls_bootstrap and options.kubeconfig
    if configuration.enable_server and configuration.port and not signed_by_cluster:
        pair.begin()
    return pair
