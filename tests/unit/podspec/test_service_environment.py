"""What containers are told of services. Quotes: behaviours.md §21."""

from __future__ import annotations

from typing import Any

from glasslet.api.codec import convert
from glasslet.kubeapi.objects.services import ServiceAddress
from glasslet.podspec.service_environment import service_environment
from tests.builders.objects import service

KUBERNETES = service("kubernetes", "10.96.0.1", {"name": "https", "port": 443, "protocol": "TCP"})


def variables(*services: dict[str, Any], namespace: str = "default", links: bool = True) -> dict[str, str]:
    return service_environment([convert(one, ServiceAddress) for one in services], namespace=namespace, links=links)


# "Names upper-cased, - to _: X_SERVICE_HOST, X_SERVICE_PORT (first port), X_SERVICE_PORT_<NAME>, X_PORT =
# proto://ip:port of the first, X_PORT_<port>_<PROTO>, ..._PROTO, ..._PORT, ..._ADDR."
def test_every_variable_of_a_service_with_two_ports() -> None:
    dns = service(
        "kube-dns",
        "10.96.0.10",
        {"name": "dns-udp", "port": 53, "protocol": "UDP"},
        {"name": "metrics", "port": 9153},
    )
    assert variables(dns) == {
        "KUBE_DNS_SERVICE_HOST": "10.96.0.10",
        "KUBE_DNS_SERVICE_PORT": "53",
        "KUBE_DNS_SERVICE_PORT_DNS_UDP": "53",
        "KUBE_DNS_SERVICE_PORT_METRICS": "9153",
        "KUBE_DNS_PORT": "udp://10.96.0.10:53",
        "KUBE_DNS_PORT_53_UDP": "udp://10.96.0.10:53",
        "KUBE_DNS_PORT_53_UDP_PROTO": "udp",
        "KUBE_DNS_PORT_53_UDP_PORT": "53",
        "KUBE_DNS_PORT_53_UDP_ADDR": "10.96.0.10",
        "KUBE_DNS_PORT_9153_TCP": "tcp://10.96.0.10:9153",
        "KUBE_DNS_PORT_9153_TCP_PROTO": "tcp",
        "KUBE_DNS_PORT_9153_TCP_PORT": "9153",
        "KUBE_DNS_PORT_9153_TCP_ADDR": "10.96.0.10",
    }


# "IPv6 in brackets inside URLs."
def test_addresses_of_version_6_stand_in_brackets_only_in_urls() -> None:
    found = variables(service("web", "fd00::1"))
    assert found["WEB_PORT"] == "tcp://[fd00::1]:80"
    assert found["WEB_SERVICE_HOST"] == found["WEB_PORT_80_TCP_ADDR"] == "fd00::1"


# "those in the pod's namespace if enableServiceLinks (default true), plus `kubernetes` of namespace default always (not
# overriding an own one)"
def test_links_are_those_of_the_own_namespace_and_the_api_server() -> None:
    own, other = service("web", "10.96.0.2", namespace="shop"), service("db", "10.96.0.3", namespace="other")
    hosts = {k: v for k, v in variables(KUBERNETES, own, other, namespace="shop").items() if k.endswith("_HOST")}
    assert hosts == {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "WEB_SERVICE_HOST": "10.96.0.2"}


def test_without_links_only_the_api_server_is_told() -> None:
    found = variables(KUBERNETES, service("web", "10.96.0.2"), links=False)
    assert {name.partition("_")[0] for name in found} == {"KUBERNETES"}


def test_an_own_service_called_kubernetes_goes_first() -> None:
    own = service("kubernetes", "10.96.7.7", namespace="shop")
    for order in ((KUBERNETES, own), (own, KUBERNETES)):
        assert variables(*order, namespace="shop")["KUBERNETES_SERVICE_HOST"] == "10.96.7.7"
        assert variables(*order, namespace="shop", links=False)["KUBERNETES_SERVICE_HOST"] == "10.96.0.1"


# "Headless and IP-less services are skipped."
def test_services_without_an_address_are_left_out() -> None:
    assert variables(service("headless", "None"), service("external", "")) == {}


def test_only_what_is_needed_is_kept_of_a_service() -> None:
    body = service("web", "10.96.0.2")
    body["metadata"] |= {"annotations": {"note": "x" * 1000}, "labels": {"a": "b"}, "uid": "u"}
    kept = convert(body, ServiceAddress)
    assert (kept.metadata.annotations, kept.metadata.labels, kept.metadata.uid) == ({}, {}, "")
