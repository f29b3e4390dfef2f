"""The text of a pod's /etc/hosts."""

from __future__ import annotations

from collections.abc import Iterable

from glasslet.api.pod import HostAlias

_MANAGED = "# Kubernetes-managed hosts file.\n"
_MANAGED_HOST_NETWORK = "# Kubernetes-managed hosts file (host network).\n"
_LOCAL = (
    "127.0.0.1\tlocalhost\n"
    "::1\tlocalhost ip6-localhost ip6-loopback\n"
    "fe00::0\tip6-localnet\n"
    "fe00::0\tip6-mcastprefix\n"
    "fe00::1\tip6-allnodes\n"
    "fe00::2\tip6-allrouters\n"
)


def pod_hosts(ips: Iterable[str], name: str, domain: str, aliases: Iterable[HostAlias]) -> str:
    """For a pod with a network of its own: each address with the pod's names."""
    names = f"{name}.{domain}\t{name}" if domain else name
    return _MANAGED + _LOCAL + "".join(f"{ip}\t{names}\n" for ip in ips) + _alias_lines(aliases)


def node_hosts(node_file: str, aliases: Iterable[HostAlias]) -> str:
    """For a pod on the host's network: the node's own file."""
    return _MANAGED_HOST_NETWORK + node_file + _alias_lines(aliases)


def _alias_lines(aliases: Iterable[HostAlias]) -> str:
    lines = ["\t".join((alias.ip, *alias.hostnames)) + "\n" for alias in aliases]
    return "\n# Entries added by HostAliases.\n" + "".join(lines) if lines else ""
