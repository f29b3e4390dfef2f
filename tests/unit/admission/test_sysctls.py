"""Which sysctls a pod may set."""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.admission.sysctls import namespace_of, normalized, safe_sysctls, sysctl_rule
from glasslet.api.security import PodSecurityContext, Sysctl
from tests.builders.admission import api_pod, candidate

SAFE = safe_sysctls("6.1.0-28-amd64")


def refusal(name: str, *, allowed: tuple[str, ...] = (), **fields: Any) -> str:
    context = PodSecurityContext(sysctls=(Sysctl(name=name, value="1"),))
    found = sysctl_rule((*SAFE, *allowed))(candidate(api_pod(security_context=context, **fields)))
    assert found is None or found.reason == "SysctlForbidden"
    return found.message if found is not None else ""


@pytest.mark.parametrize("name", SAFE)
def test_safe_sysctls_are_allowed(name: str) -> None:
    # behaviours.md §14: "Safe sysctls: kernel.shm_rmid_forced, net.ipv4.ip_local_port_range, net.ipv4.tcp_syncookies,
    # net.ipv4.ping_group_range, ..."
    assert refusal(name) == ""


@pytest.mark.parametrize("allowed", ["kernel.msgmax", "kernel.msg*", "kernel/msgmax"])
def test_unsafe_sysctl_needs_the_configuration(allowed: str) -> None:
    assert refusal("kernel.msgmax") == 'forbidden sysctl: "kernel.msgmax" not allowlisted'
    assert refusal("kernel.msgmax", allowed=(allowed,)) == ""


def test_sysctls_of_a_shared_namespace_are_forbidden() -> None:
    # behaviours.md §14: "net.* with hostNetwork and ipc ones with hostIPC are refused."
    assert refusal("net.ipv4.tcp_rmem", host_network=True) == (
        'forbidden sysctl: "net.ipv4.tcp_rmem" not allowed with host Net enabled'
    )
    assert refusal("kernel.shm_rmid_forced", host_ipc=True) == (
        'forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host IPC enabled'
    )
    assert refusal("kernel.shm_rmid_forced", host_network=True) == ""


def test_old_kernels_have_fewer_safe_sysctls() -> None:
    assert "net.ipv4.tcp_rmem" not in safe_sysctls("4.14.0")
    assert "net.ipv4.tcp_fin_timeout" in safe_sysctls("4.14.0")
    assert len(safe_sysctls("unreadable")) == 5


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("net/ipv4/conf/eth0.1/rp_filter", "net.ipv4.conf.eth0/1.rp_filter"),
        ("net.ipv4.conf.eth0/1.rp_filter", "net.ipv4.conf.eth0/1.rp_filter"),
        ("kernel", "kernel"),
    ],
)
def test_names_may_use_slashes(written: str, meant: str) -> None:
    # behaviours.md §14: "Names may use / for dots."
    assert normalized(written) == meant


@pytest.mark.parametrize(
    ("name", "namespace"), [("kernel.sem", "IPC"), ("fs.mqueue.x", "IPC"), ("net.core.x", "Net"), ("vm.x", "")]
)
def test_namespace_of_a_sysctl(name: str, namespace: str) -> None:
    assert namespace_of(name) == namespace
