from __future__ import annotations

import re
from typing import Any

import pytest

from glasslet.podspec.errors import ConfigError
from glasslet.podspec.hostname import kernel_hostname, pod_hostname
from tests.builders.podspec import pod_of

DOMAIN = "cluster.local"


def test_a_pod_is_called_by_its_name() -> None:
    assert pod_hostname(pod_of(), DOMAIN) == ("web", "")


def test_its_own_host_name_goes_first() -> None:
    assert pod_hostname(pod_of(hostname="db-0", subdomain="db"), DOMAIN) == ("db-0", "db.default.svc.cluster.local")


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        # behaviours.md §19: "cut to 63 characters with trailing - and . removed"
        ("a" * 63, "a" * 63),
        ("a" * 64, "a" * 63),
        ("a" * 61 + "-.bc", "a" * 61),
    ],
)
def test_a_long_name_is_cut(name: str, cut: str) -> None:
    assert pod_hostname(pod_of(meta={"name": name}), DOMAIN).name == cut


@pytest.mark.parametrize(
    ("field", "value"), [("hostname", "Big"), ("hostname", "a.b"), ("subdomain", "a.b"), ("subdomain", "x" * 64)]
)
def test_a_name_that_is_no_label_is_refused(field: str, value: str) -> None:
    # behaviours.md §19: "subdomain must be a DNS label"
    spec: dict[str, Any] = {field: value}
    with pytest.raises(ConfigError, match=re.escape(f'pod {field.capitalize()} "{value}" is not a valid DNS label: ')):
        pod_hostname(pod_of(**spec), DOMAIN)


def test_a_name_of_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(ConfigError, match=r'hostname for pod "-+" was invalid'):
        pod_hostname(pod_of(meta={"name": "-" * 70}), DOMAIN)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({}, "web"),
        ({"setHostnameAsFQDN": True}, "web"),
        ({"subdomain": "s"}, "web"),
        ({"subdomain": "s", "setHostnameAsFQDN": True}, "web.s.default.svc.cluster.local"),
    ],
)
def test_the_kernel_is_given_the_full_name_only_on_request(spec: dict[str, Any], name: str) -> None:
    assert kernel_hostname(pod_of(**spec), DOMAIN) == name


def test_a_full_name_above_64_characters_makes_no_sandbox() -> None:
    # behaviours.md §19: "setHostnameAsFQDN uses the FQDN (max 64, else no sandbox is made)"
    pod = pod_of(subdomain="s" * 40, setHostnameAsFQDN=True)
    fqdn = f"web.{'s' * 40}.default.svc.cluster.local"
    with pytest.raises(ConfigError) as caught:
        kernel_hostname(pod, DOMAIN)
    assert caught.value.message == (
        f"failed to construct FQDN from pod hostname and cluster domain, FQDN {fqdn} is too long "
        f"(64 characters is the max, {len(fqdn)} characters requested)"
    )


@pytest.mark.parametrize(
    ("override", "name"), [("other.example", "other.example"), ("a" * 50 + "." + "b" * 13, "a" * 50 + "." + "b" * 12)]
)
def test_an_override_is_the_whole_name_everywhere(override: str, name: str) -> None:
    # behaviours.md §19: "hostnameOverride with gate HostnameOverride (alpha, off)."
    pod = pod_of(hostnameOverride=override, hostname="db-0", subdomain="db", setHostnameAsFQDN=True)
    assert pod_hostname(pod, DOMAIN) == (name, "")
    assert kernel_hostname(pod, DOMAIN) == name


def test_an_override_that_is_no_name_is_refused() -> None:
    with pytest.raises(ConfigError, match='pod HostnameOverride "Big" is not a valid DNS subdomain: '):
        pod_hostname(pod_of(hostnameOverride="Big"), DOMAIN)
