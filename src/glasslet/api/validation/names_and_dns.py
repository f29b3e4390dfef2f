"""Names of a pod and its name resolution: hostname, DNS settings, host aliases, references to other objects."""

from __future__ import annotations

from glasslet.api.field_errors import FieldPath, forbidden, invalid, required, too_long
from glasslet.api.formats import dns_label_problems, dns_subdomain_problems, ip_problems
from glasslet.api.pod import PodSpec
from glasslet.api.validation.rules import Errors, formatted

MAX_NAMESERVERS = 3
MAX_SEARCHES = 32
MAX_SEARCH_CHARACTERS = 2048


def dns_errors(spec: PodSpec, path: FieldPath) -> Errors:
    """`spec.dnsConfig`, which policy None needs."""
    config = spec.dns_config
    if spec.dns_policy == "None":
        if config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        elif not config.nameservers:
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(path.child("nameservers"), text)
            return
    if config is None:
        return
    servers, searches = path.child("nameservers"), path.child("searches")
    if len(config.nameservers) > MAX_NAMESERVERS:
        yield invalid(servers, config.nameservers, f"must not have more than {MAX_NAMESERVERS} nameservers")
    for number, address in enumerate(config.nameservers):
        yield from formatted(address, servers.at(number), ip_problems)
    if len(config.searches) > MAX_SEARCHES:
        yield invalid(searches, config.searches, f"must not have more than {MAX_SEARCHES} search paths")
    if len(" ".join(config.searches)) > MAX_SEARCH_CHARACTERS:
        text = f"must not have more than {MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list"
        yield invalid(searches, config.searches, text)
    for number, search in enumerate(config.searches):
        yield from formatted(search.removesuffix("."), searches.at(number), dns_subdomain_problems)
    for number, option in enumerate(config.options):
        if not option.name:
            yield required(path.child("options").at(number), "must not be empty")


def host_name_errors(spec: PodSpec, path: FieldPath) -> Errors:
    """hostname, subdomain and hostnameOverride. `path`: spec."""
    for name, value in (("hostname", spec.hostname), ("subdomain", spec.subdomain)):
        if value:
            yield from formatted(value, path.child(name), dns_label_problems)
    override, here = spec.hostname_override, path.child("hostnameOverride")
    if override is None:
        return
    if spec.set_hostname_as_fqdn:
        yield forbidden(here, "may not be specified when setHostnameAsFQDN is true")
    if spec.host_network:
        yield forbidden(here, "may not be specified when hostNetwork is true")
    if len(override) > 64:
        yield too_long(here, 64)
    yield from formatted(override, here, dns_subdomain_problems)


def host_alias_errors(spec: PodSpec, path: FieldPath) -> Errors:
    """`spec.hostAliases`."""
    for number, alias in enumerate(spec.host_aliases):
        yield from formatted(alias.ip, path.at(number).child("ip"), ip_problems)
        for index, name in enumerate(alias.hostnames):
            yield from formatted(name, path.at(number).child("hostnames").at(index), dns_subdomain_problems)


def reference_errors(spec: PodSpec, path: FieldPath) -> Errors:
    """Names of other objects: service account, node, priority class, runtime class. `path`: spec."""
    for name, value in (
        ("serviceAccountName", spec.service_account_name or None),
        ("nodeName", spec.node_name or None),
        ("priorityClassName", spec.priority_class_name or None),
        ("runtimeClassName", spec.runtime_class_name),
    ):
        if value is not None:
            yield from formatted(value, path.child(name), dns_subdomain_problems)
