"""A pod's resolv.conf: the host's file, the cluster's servers, the pod's own settings, cut to the limits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import Struct

from glasslet.api.pod import Pod, PodDNSConfig
from glasslet.host.resolver import MAX_SEARCH_CHARS, MAX_SEARCH_LENGTH, MAX_SEARCHES
from glasslet.podspec.errors import sandbox_error
from glasslet.podspec.request import NodeFacts
from glasslet.runtime.spec import DNSConfig

MAX_SERVERS = 3
CLUSTER_OPTIONS = ("ndots:5",)

_NO_CLUSTER_DNS = (
    'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. '
    'Falling back to "Default" policy.'
)


TOO_MUCH: Final = "DNSConfigForming"
"""Reason of the event for a configuration beyond the limits of resolvers."""


class DNSProblem(NamedTuple):
    """An event for the pod (`reason`, `message`), and one for the node where `node_message` is set."""

    reason: str
    message: str
    node_message: str = ""


class FormedDNS(NamedTuple):
    """A pod's resolver settings, and the problems found on the way."""

    config: DNSConfig
    problems: tuple[DNSProblem, ...]


class _Draft(Struct):
    servers: list[str]
    searches: list[str]
    options: dict[str, str]


def dns_config(pod: Pod, node: NodeFacts) -> DNSConfig:
    """A pod's resolver settings. Raises ConfigError as `form_dns` does."""
    return form_dns(pod, node).config


def form_dns(pod: Pod, node: NodeFacts) -> FormedDNS:
    """A pod's resolver settings with the problems that are worth an event. Raises ConfigError if the node's resolver
    file cannot be used."""
    if node.resolver.problem:
        raise sandbox_error(node.resolver.problem)
    problems: list[DNSProblem] = []
    policy = _effective_policy(pod)
    if policy == "Cluster" and not node.cluster_dns:
        problems.append(_missing_cluster_dns(pod))
        policy = "Default"
    draft = _base(policy, pod, node)
    if pod.spec.dns_config is not None:
        _add(draft, pod.spec.dns_config)
    servers = _fit_servers(draft.servers, problems)
    searches = _fit_searches(draft.searches, problems)
    options = tuple(f"{name}:{value}" if value else name for name, value in draft.options.items())
    return FormedDNS(DNSConfig(servers=servers, searches=searches, options=options), tuple(problems))


def _effective_policy(pod: Pod) -> str:
    match pod.spec.dns_policy:
        case "None" | "Default" as policy:
            return policy
        case "ClusterFirst" if pod.spec.host_network:
            return "Default"
        case _:
            # An unknown policy is treated as the API's default.
            return "Cluster"


def _base(policy: str, pod: Pod, node: NodeFacts) -> _Draft:
    host = node.resolver
    if policy == "None":
        return _Draft([], [], {})
    if policy == "Cluster":
        return _Draft(list(node.cluster_dns), _cluster_searches(pod, node), _split(CLUSTER_OPTIONS))
    if host.absent:
        # No file means "ask the machine itself", as resolvers do when they find no server.
        local = ["::1" if ":" in ip else "127.0.0.1" for ip in node.host_ips]
        return _Draft(local or ["127.0.0.1"], ["."], {})
    return _Draft(list(host.servers), list(host.searches), _split(host.options))


def _cluster_searches(pod: Pod, node: NodeFacts) -> list[str]:
    domain = node.cluster_domain
    if not domain:
        return list(node.resolver.searches)
    cluster = (f"{pod.metadata.namespace}.svc.{domain}", f"svc.{domain}", domain)
    return _unique((*cluster, *node.resolver.searches))


def _add(draft: _Draft, own: PodDNSConfig) -> None:
    draft.servers = _unique((*draft.servers, *own.nameservers))
    draft.searches = _unique((*draft.searches, *own.searches))
    draft.options.update((option.name, option.value or "") for option in own.options)


def _split(options: Iterable[str]) -> dict[str, str]:
    pairs = (option.partition(":") for option in options)
    return {name: value for name, _, value in pairs}


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))


def _fit_servers(servers: list[str], problems: list[DNSProblem]) -> tuple[str, ...]:
    if len(servers) <= MAX_SERVERS:
        return tuple(servers)
    kept = servers[:MAX_SERVERS]
    problems.append(_exceeded("Nameserver limits", "nameservers", "nameserver", kept))
    return tuple(kept)


def _fit_searches(searches: list[str], problems: list[DNSProblem]) -> tuple[str, ...]:
    # Resolvers abort on a domain above the limit, so such a one goes even where there is room.
    kept = [search for search in searches[:MAX_SEARCHES] if len(search) <= MAX_SEARCH_LENGTH]
    while len(" ".join(kept)) > MAX_SEARCH_CHARS:
        kept.pop()
    if len(kept) < len(searches):
        problems.append(_exceeded("Search Line limits", "search paths", "search", kept))
    return tuple(kept)


def _exceeded(limits: str, things: str, line: str, kept: list[str]) -> DNSProblem:
    text = f"{limits} were exceeded, some {things} have been omitted, the applied {line} line is: {' '.join(kept)}"
    return DNSProblem(TOO_MUCH, text)


def _missing_cluster_dns(pod: Pod) -> DNSProblem:
    meta = pod.metadata
    pod_name = f'pod: "{meta.name}_{meta.namespace}({meta.uid})". '
    return DNSProblem("MissingClusterDNS", pod_name + _NO_CLUSTER_DNS, _NO_CLUSTER_DNS)
