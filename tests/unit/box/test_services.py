"""Services on one machine: addresses, routes, names."""

from __future__ import annotations

from typing import Any

from glasslet.box.services import BackingPod, BoxService, addresses_of, problems_of, routing
from glasslet.box.shapes import WrittenPort, WrittenService

WEB = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"ports": [{"name": "http", "containerPort": 8080}]}]},
}


def service(name: str = "web", **spec: Any) -> BoxService:
    ports = spec.pop("ports", (WrittenPort(port=80, target_port="http"),))
    return BoxService("shop", name, WrittenService(selector=spec.pop("selector", {"app": "web"}), ports=ports, **spec))


def pod(ip: str, *, ready: bool = True, **manifest: Any) -> BackingPod:
    return BackingPod(namespace="shop", manifest={**WEB, **manifest}, ip=ip, ready=ready)


def test_addresses_stay_when_services_come_and_go() -> None:
    first = addresses_of([service("b")], {}, "10.217.7.0/24")
    assert first == {"shop/b": "10.217.7.1"}
    assert addresses_of([service("a"), service("b")], first, "10.217.7.0/24") == {**first, "shop/a": "10.217.7.2"}
    assert addresses_of([service("a")], first, "10.217.7.0/24") == {"shop/a": "10.217.7.1"}


def test_a_full_network_leaves_a_service_without_an_address() -> None:
    assert len(addresses_of([service(f"s{n}") for n in range(5)], {}, "10.217.7.0/30")) == 2


def test_connections_go_to_the_ready_pods_that_the_selector_chooses() -> None:
    other = pod("10.0.0.9", metadata={"labels": {"app": "db"}})
    found = routing([service()], {"shop/web": "10.217.7.1"}, [pod("10.0.0.2"), pod("10.0.0.3", ready=False), other])
    (route,) = found.routes
    assert (route.address, route.port, route.targets) == ("10.217.7.1", 80, (("10.0.0.2", 8080),))
    assert found.names["web.shop.svc.cluster.local"] == ("10.217.7.1",)


def test_a_node_port_is_reachable_at_every_address() -> None:
    port = WrittenPort(port=80, target_port=8080, node_port=30080)
    found = routing([service(type="NodePort", ports=(port,))], {"shop/web": "10.217.7.1"}, [pod("10.0.0.2")])
    assert [(route.address, route.port) for route in found.routes] == [("10.217.7.1", 80), ("0.0.0.0", 30080)]


def test_a_headless_service_has_the_addresses_of_its_pods() -> None:
    named = pod("10.0.0.2", spec={"hostname": "web-0", "subdomain": "web"})
    found = routing([service(cluster_ip="None")], {}, [named, pod("10.0.0.3")])
    assert found.routes == ()
    assert found.names == {
        "web.shop.svc.cluster.local": ("10.0.0.2", "10.0.0.3"),
        "web-0.web.shop.svc.cluster.local": ("10.0.0.2",),
    }


def test_an_external_name_is_another_name() -> None:
    found = routing([service(type="ExternalName", external_name="example.org.")], {}, [])
    assert found.aliases == {"web.shop.svc.cluster.local": "example.org"}


def test_pods_that_are_not_ready_count_where_the_service_publishes_them() -> None:
    found = routing([service(cluster_ip="None", publish_not_ready_addresses=True)], {}, [pod("10.0.0.2", ready=False)])
    assert found.names["web.shop.svc.cluster.local"] == ("10.0.0.2",)


def test_what_is_not_done_is_said() -> None:
    assert "no address outside" in problems_of(service(type="LoadBalancer"))[0]
    assert "no selector" in problems_of(service(selector={}))[0]
    assert "SCTP is not passed on" in problems_of(service(ports=(WrittenPort(port=1, protocol="SCTP"),)))[0]
    assert "allowed: ClusterIP" in problems_of(service(type="Magic"))[0]
    assert problems_of(service()) == []
