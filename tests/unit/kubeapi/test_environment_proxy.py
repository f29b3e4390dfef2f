"""Which requests go through the proxy of the environment."""

from __future__ import annotations

import pytest

from glasslet.kubeapi.environment_proxy import BadProxy, environment_proxy

API = "https://api.example.com:6443"


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        (API, {}, ""),
        (API, {"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        (API, {"https_proxy": "proxy:3128"}, "http://proxy:3128"),
        (API, {"HTTPS_PROXY": "http://upper:1", "https_proxy": "http://lower:1"}, "http://upper:1"),
        (API, {"HTTP_PROXY": "http://proxy:3128"}, ""),
        ("http://api.example.com", {"HTTP_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://proxy:3128"}, ""),
        ("https://127.0.0.9:6443", {"HTTPS_PROXY": "http://proxy:3128"}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://proxy:3128"}, ""),
    ],
)
def test_the_variable_of_the_scheme_decides_and_this_machine_is_asked_directly(
    url: str, environment: dict[str, str], proxy: str
) -> None:
    assert environment_proxy(url, environment) == proxy


@pytest.mark.parametrize(
    ("url", "listed", "direct"),
    [
        (API, "*", True),
        (API, "example.com", True),
        (API, ".example.com", True),
        (API, "*.example.com", True),
        (API, "API.example.COM", True),
        (API, "pi.example.com", False),
        (API, "other.org, api.example.com:6443", True),
        (API, "api.example.com:443", False),
        ("https://example.com", ".example.com", False),
        ("https://10.1.2.3:6443", "10.0.0.0/8", True),
        ("https://10.1.2.3:6443", "10.1.2.3", True),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", True),
        ("https://10.1.2.3:6443", "10.2.0.0/16,nonsense/x", False),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        (API, " , ", False),
    ],
)
def test_no_proxy_names_hosts_domains_and_networks(url: str, listed: str, direct: bool) -> None:
    environment = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": listed}
    assert environment_proxy(url, environment) == ("" if direct else "http://proxy:3128")


@pytest.mark.parametrize("value", ["http://", "http://proxy:port", "socks5://user:geheim@proxy:1080"])
def test_what_is_no_usable_proxy_is_an_error_that_names_the_variable_and_hides_the_value(value: str) -> None:
    with pytest.raises(BadProxy, match="environment variable HTTPS_PROXY") as error:
        environment_proxy(API, {"HTTPS_PROXY": value})
    assert "geheim" not in str(error.value)
