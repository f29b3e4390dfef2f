"""The node's slice of the configuration."""

from __future__ import annotations

from typing import Any

from glasslet.config.feature_gates import FeatureGates
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.config.options import Options
from glasslet.node.settings import NodeSettings, node_settings


def settings_of(*, options: Options | None = None, **configuration: Any) -> NodeSettings:
    return node_settings("n1", options or Options(), KubeletConfiguration(**configuration), FeatureGates({}))


def test_reserved_cpus_take_the_place_of_cpu_reservations() -> None:
    # behaviours.md §17: "reservedSystemCPUs overrides CPU reservations with its count."
    system, kube = settings_of(
        reserved_system_cpus="0-1,1,6",
        kube_reserved={"cpu": "500m", "memory": "1Gi"},
        system_reserved={"cpu": "250m"},
    ).reserved
    assert {name: str(amount) for name, amount in system.items()} == {"cpu": "3"}
    assert {name: str(amount) for name, amount in kube.items()} == {"memory": "1Gi"}


def test_node_addresses_are_read_in_their_canonical_form() -> None:
    given = settings_of(options=Options(node_ip="10.1.2.3, FD00:0::3 ,nonsense"))
    assert given.node_ips == given.given_ips == ("10.1.2.3", "fd00::3")


def test_an_unspecified_node_address_names_none() -> None:
    # behaviours.md §12: "--node-ip `0.0.0.0` or `::` only chooses the preferred family"
    given = settings_of(options=Options(node_ip="::"))
    assert (given.node_ips, given.given_ips) == (("::",), ())


def test_thresholds_can_be_left_out_of_allocatable() -> None:
    hard = {"memory.available": "1Gi"}
    assert settings_of(eviction_hard=hard).eviction_hard == hard
    ignoring = Options(experimental_allocatable_ignore_eviction=True)
    assert settings_of(options=ignoring, eviction_hard=hard).eviction_hard == {}


def test_a_status_request_is_given_up_before_it_is_stale() -> None:
    # behaviours.md §12: "The status calls use a separate client, timeout min(nodeStatusUpdateFrequency, lease
    # duration)"
    assert settings_of().status_timeout == 10
    assert settings_of(node_lease_duration_seconds=4).status_timeout == 4
