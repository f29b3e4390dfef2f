from __future__ import annotations

from typing import Any

import pytest

from glasslet.host.resolver import ResolverFile
from glasslet.podspec.dns import FormedDNS, dns_config, form_dns
from glasslet.podspec.errors import ConfigError
from glasslet.runtime.spec import DNSConfig
from tests.builders.podspec import node_facts, pod_of

HOST = ResolverFile(servers=("192.0.2.53",), searches=("example.org", "svc.cluster.local"), options=("timeout:2",))


def formed(node: dict[str, Any] | None = None, **spec: Any) -> FormedDNS:
    return form_dns(pod_of(**spec), node_facts(**({"resolver": HOST} | (node or {}))))


CLUSTER = DNSConfig(
    servers=("10.96.0.10",),
    # behaviours.md §20: "<ns>.svc.<domain>, svc.<domain>, <domain>, then host searches, duplicates removed"
    searches=("default.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.org"),
    # behaviours.md §20: "Options: exactly ndots:5 for cluster policy; host options for Default."
    options=("ndots:5",),
)
OF_HOST = DNSConfig(servers=HOST.servers, searches=HOST.searches, options=HOST.options)


@pytest.mark.parametrize(
    ("policy", "host_network", "expected"),
    [
        # behaviours.md §20: "dnsPolicy: None = only dnsConfig; Default = host file; ClusterFirst on pod network and
        # ClusterFirstWithHostNet = clusterDNS; ClusterFirst on host network acts as Default. An unknown policy acts as
        # cluster."
        ("ClusterFirst", False, CLUSTER),
        ("ClusterFirst", True, OF_HOST),
        ("ClusterFirstWithHostNet", True, CLUSTER),
        ("Default", False, OF_HOST),
        ("None", False, DNSConfig()),
        ("Sideways", False, CLUSTER),
    ],
)
def test_the_policy_chooses_the_base(policy: str, host_network: bool, expected: DNSConfig) -> None:
    found = formed(dnsPolicy=policy, hostNetwork=host_network)
    assert found == FormedDNS(expected, ())


def test_without_cluster_domain_only_host_searches_are_left() -> None:
    # behaviours.md §20: "without clusterDomain only host searches"
    assert formed({"cluster_domain": ""}).config.searches == HOST.searches


def test_without_cluster_dns_a_pod_gets_the_hosts_and_both_are_told() -> None:
    # behaviours.md §20: "Without clusterDNS: Default plus MissingClusterDNS." and "an event on the node and on the pod"
    config, problems = formed({"cluster_dns": ()})
    text = (
        'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. '
        'Falling back to "Default" policy.'
    )
    assert config == OF_HOST
    assert problems[0].reason == "MissingClusterDNS"
    assert problems[0].message == f'pod: "web_default(uid-1)". {text}'
    assert problems[0].node_message == text


def test_own_settings_are_added_and_override_options_by_name() -> None:
    # behaviours.md §20: "dnsConfig: nameservers and searches appended without duplicates, options override by name"
    own = {
        "nameservers": ["10.96.0.10", "1.1.1.1"],
        "searches": ["my.org", "cluster.local"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
    }
    config = formed(dnsConfig=own).config
    assert config.servers == ("10.96.0.10", "1.1.1.1")
    assert config.searches == (*CLUSTER.searches, "my.org")
    assert config.options == ("ndots:2", "edns0")


def test_policy_none_has_only_own_settings() -> None:
    own = {"nameservers": ["1.1.1.1"]}
    assert formed(dnsPolicy="None", dnsConfig=own).config == DNSConfig(servers=("1.1.1.1",))


@pytest.mark.parametrize(
    ("ips", "servers"),
    [(("192.0.2.1",), ("127.0.0.1",)), (("2001:db8::1", "192.0.2.1"), ("::1", "127.0.0.1")), ((), ("127.0.0.1",))],
)
def test_a_node_without_resolver_file_asks_itself(ips: tuple[str, ...], servers: tuple[str, ...]) -> None:
    # behaviours.md §20: 'resolvConf "" = 127.0.0.1 (or ::1) per node IP family and search "."'
    found = formed({"resolver": ResolverFile(absent=True), "host_ips": ips}, dnsPolicy="Default").config
    assert (found.servers, found.searches) == (servers, (".",))


def test_a_fourth_server_is_cut_and_told() -> None:
    # behaviours.md §20: "Limits: 3 servers, 32 searches, 2048 characters, 253 per search; the rest is cut with
    # DNSConfigForming."
    config, problems = formed(dnsConfig={"nameservers": ["1.1.1.1", "2.2.2.2", "3.3.3.3"]})
    assert config.servers == ("10.96.0.10", "1.1.1.1", "2.2.2.2")
    assert problems[0].reason == "DNSConfigForming"
    assert problems[0].message == (
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
        "10.96.0.10 1.1.1.1 2.2.2.2"
    )


def searches(*names: str) -> FormedDNS:
    return formed(dnsPolicy="None", dnsConfig={"searches": list(names)})


def test_the_thirty_third_search_is_cut() -> None:
    config, problems = searches(*(f"s{i}.org" for i in range(33)))
    assert len(config.searches) == 32
    assert problems[0].message.startswith("Search Line limits were exceeded, some search paths have been omitted, ")
    assert problems[0].message.endswith("s31.org")


def test_thirty_two_searches_are_fine() -> None:
    assert searches(*(f"s{i}.org" for i in range(32))).problems == ()


def test_a_search_above_253_characters_is_left_out() -> None:
    config, problems = searches("a" * 254, "b" * 253)
    assert config.searches == ("b" * 253,)
    assert len(problems) == 1


def test_a_search_line_above_2048_characters_loses_its_end() -> None:
    fits = [f"{i}" * 204 for i in range(10)]  # ten of 204 and nine spaces: 2049
    config, problems = searches(*fits)
    assert config.searches == tuple(fits[:9])
    assert len(problems) == 1
    assert searches(*fits[:9], "9" * 203).problems == ()


@pytest.mark.parametrize("policy", ["None", "Default", "ClusterFirst"])
def test_an_unreadable_host_file_makes_no_sandbox(policy: str) -> None:
    # behaviours.md §20: "The host file is read for every policy, None too; unreadable means no sandbox."
    with pytest.raises(ConfigError, match="open /r: No such file") as caught:
        formed({"resolver": ResolverFile(problem="open /r: No such file")}, dnsPolicy=policy)
    assert caught.value.reason == "ConfigPodSandboxError"


def test_the_short_form_gives_the_same_settings() -> None:
    node = node_facts(resolver=HOST)
    assert dns_config(pod_of(), node) == form_dns(pod_of(), node).config
