"""What an HTTP probe sends. behaviours.md §10, httpGet."""

from __future__ import annotations

import pytest

from glasslet.api.lifecycle import HTTPGetAction, HTTPHeader
from glasslet.probes.answer import Unprobeable
from glasslet.probes.http_request import (
    ProbeURL,
    is_relative,
    probe_headers,
    probe_url,
    redirected,
    request_bytes,
    request_target,
    with_referer,
)


def headers(*pairs: tuple[str, str]) -> tuple[HTTPHeader, ...]:
    return tuple(HTTPHeader(name=name, value=value) for name, value in pairs)


def sent(*pairs: tuple[str, str], path: str = "/ready", host: str = "10.0.0.7", port: int = 8080) -> list[str]:
    """The lines of a request."""
    url = probe_url(HTTPGetAction(path=path), host, port)
    return request_bytes(url, probe_headers(headers(*pairs)), keep_host=True).decode().split("\r\n")


def test_a_plain_probe_says_who_it_is_and_accepts_anything() -> None:
    # "User-Agent `kube-probe/<major>.<minor>`, Accept `*/*` ... no compression, keep-alive off"
    assert sent() == [
        "GET /ready HTTP/1.1",
        "Host: 10.0.0.7:8080",
        "User-Agent: kube-probe/1.34",
        "Accept: */*",
        "Connection: close",
        "",
        "",
    ]


@pytest.mark.parametrize("name", ["Accept", "accept", "User-Agent", "USER-AGENT"])
def test_an_empty_value_takes_a_header_away(name: str) -> None:
    # "unless overridden by headers (an empty value removes it)"
    assert not [line for line in sent((name, "")) if line.lower().startswith(name.lower())]


def test_headers_of_the_probe_replace_ours() -> None:
    lines = sent(("user-agent", "mine"), ("accept", "text/plain"))
    assert "User-Agent: mine" in lines
    assert "Accept: text/plain" in lines


def test_the_host_header_of_the_probe_counts() -> None:
    # "Host header from httpHeaders"
    assert sent(("host", "www.example.test"))[1] == "Host: www.example.test"


def test_headers_are_spelled_as_usual_and_may_come_twice() -> None:
    lines = sent(("x-one", "1"), ("X-ONE", "2"), ("a-b", "é"))
    assert lines[3:7] == ["A-B: é", "Accept: */*", "X-One: 1", "X-One: 2"]


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Trailer"])
def test_headers_about_a_body_are_left_out(name: str) -> None:
    assert len(sent((name, "5"))) == len(sent())


def test_a_probe_may_ask_for_another_protocol() -> None:
    assert "Connection: close" not in sent(("Upgrade", "websocket"), ("Connection", "Upgrade"))


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("X-A", "a\r\nX-B: b", 'invalid header field value for "X-A"'),
        ("X-A", "a\0", 'invalid header field value for "X-A"'),
        ("X A", "a", 'invalid header field name "X A"'),
        ("", "a", 'invalid header field name ""'),
    ],
)
def test_what_would_change_the_request_is_refused(name: str, value: str, why: str) -> None:
    with pytest.raises(Unprobeable, match=why):
        probe_headers(headers((name, value)))


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("", "/"),
        ("/", "/"),
        ("ready", "/ready"),
        ("/ready?full=1&x=%20", "/ready?full=1&x=%20"),
        ("/ready?", "/ready?"),
        ("?x=1", "/?x=1"),
        ("/a#b", "/a"),
        ("/a b", "/a%20b"),
        ("/é", "/%C3%A9"),
        ("/a%20b", "/a%20b"),
        ("/a%2Fb", "/a%2Fb"),
        ("/a%2fb<", "/a/b%3C"),
        ("/100%", "/100%25"),
        ("/100%?q=1", "/100%25%3Fq=1"),
        ("/a\n", "/a%0A"),
        ("//other/ready", "/ready"),
        ("http://other:1/ready?x", "/ready?x"),
        ("///ready", "///ready"),
        ("/a:b", "/a:b"),
        ("a:b/c", "/a:b/c"),
        ("/a;b=c,d!$&'()*+[1]", "/a;b=c,d!$&'()*+[1]"),
    ],
)
def test_a_path_may_hold_a_query_and_escapes(path: str, target: str) -> None:
    # "path may hold a query"
    assert request_target(path) == target


def test_addresses_of_ipv6_stand_in_brackets() -> None:
    assert sent(host="fd00::7")[1] == "Host: [fd00::7]:8080"
    assert str(probe_url(HTTPGetAction(scheme="HTTPS", path="/x"), "fd00::7", 443)) == "https://[fd00::7]:443/x"


FROM = ProbeURL(scheme="http", host="10.0.0.7", port=8080, target="/a/b?c")


@pytest.mark.parametrize(
    ("location", "to"),
    [
        ("/x", "http://10.0.0.7:8080/x"),
        ("x?y=1", "http://10.0.0.7:8080/a/x?y=1"),
        ("?z", "http://10.0.0.7:8080/a/b?z"),
        ("//10.0.0.7/x", "http://10.0.0.7/x"),
        ("https://10.0.0.7:8443/x#frag", "https://10.0.0.7:8443/x"),
        ("http://[fd00::1]:80/", "http://[fd00::1]:80/"),
        ("/a b", "http://10.0.0.7:8080/a%20b"),
    ],
)
def test_a_redirect_may_be_relative(location: str, to: str) -> None:
    assert str(redirected(FROM, location)) == to


@pytest.mark.parametrize("location", ["http://[::1", "http://10.0.0.7:port/", "http://10.0.0.7/\x01"])
def test_a_redirect_to_nowhere_is_not_followed(location: str) -> None:
    assert redirected(FROM, location) is None


def test_the_host_header_goes_along_only_with_a_relative_redirect() -> None:
    assert is_relative("/x")
    assert not is_relative("http://10.0.0.7/x")


def test_a_redirected_request_says_where_it_came_from() -> None:
    plain = probe_headers(())
    to = redirected(FROM, "/x")
    assert to is not None
    assert with_referer(plain, FROM, to)["Referer"] == ["http://10.0.0.7:8080/a/b?c"]
    own = probe_headers(headers(("Referer", "mine")))
    assert with_referer(own, FROM, to) is own


def test_a_secure_address_is_not_told_to_an_insecure_one() -> None:
    secure = redirected(FROM, "https://10.0.0.7/secret")
    assert secure is not None
    assert "Referer" not in with_referer(probe_headers(()), secure, FROM)
