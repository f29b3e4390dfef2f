from __future__ import annotations

import os
from pathlib import Path

import pytest

from glasslet.host.resolver import ResolverFile, ResolverSource, ResolverUnreadable, parse_resolver, resolver_limits


def test_servers_and_options_add_up_and_the_last_search_wins() -> None:
    # behaviours.md §20: "the last search line wins, options add up over lines (later value wins), nameservers add up"
    text = """
    # comment
    nameserver 192.0.2.1
    search old.org
    options ndots:1 timeout:2
    nameserver 192.0.2.2 ignored
    search new.org other.org
    options ndots:3 rotate
    sortlist 130.155.160.0
    """
    assert parse_resolver(text) == ResolverFile(
        servers=("192.0.2.1", "192.0.2.2"),
        searches=("new.org", "other.org"),
        options=("ndots:3", "timeout:2", "rotate"),
    )


def test_trailing_dots_and_the_root_are_taken_off_searches() -> None:
    # behaviours.md §20: "trailing dots of searches and a search `.` are removed"
    assert parse_resolver("search a.org. . b.org").searches == ("a.org", "b.org")


def test_an_empty_search_line_clears_the_list() -> None:
    assert parse_resolver("search a.org\nsearch").searches == ()


def test_a_name_server_without_address_spoils_the_file() -> None:
    with pytest.raises(ResolverUnreadable, match="nameserver list is empty"):
        parse_resolver("nameserver\nsearch a.org")


@pytest.mark.parametrize(
    ("searches", "domain", "problem"),
    [
        # behaviours.md §20: "more than 32 searches (29 with a cluster domain), one above 253 or all above 2048
        # characters"
        (("a",) * 32, "", None),
        (("a",) * 33, "", "Resolv.conf file '/r' contains search line consisting of more than 32 domains!"),
        (("a",) * 29, "c", None),
        (("a",) * 30, "c", "Resolv.conf file '/r' contains search line consisting of more than 29 domains!"),
        (("a" * 253,), "", None),
        (("a" * 254,), "", 'Resolv.conf file "/r" contains a search path which length is more than allowed 253 chars!'),
        (
            ("a" * 204,) * 10,
            "",
            "Resolv.conf file '/r' contains search line which length is more than allowed 2048 chars!",
        ),
    ],
)
def test_what_pods_cannot_be_given_is_told(searches: tuple[str, ...], domain: str, problem: str | None) -> None:
    assert resolver_limits(ResolverFile(searches=searches), "/r", cluster_domain=domain) == problem


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 192.0.2.1")
    source = ResolverSource(str(path))
    first = source.current()
    assert source.current() is first
    path.write_text("nameserver 192.0.2.22")
    assert source.current().servers == ("192.0.2.22",)


def test_no_path_means_no_file() -> None:
    assert ResolverSource("").current() == ResolverFile(absent=True)


def test_a_file_that_goes_and_comes_back_is_a_problem_in_between(tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 192.0.2.1")
    source = ResolverSource(str(path))
    assert source.look() is source.look()
    path.unlink()
    missing = source.look()
    assert missing.problem == f"open {path}: No such file or directory"
    assert source.look() is missing
    path.write_text("nameserver 192.0.2.1")
    assert (source.look().problem, source.look().servers) == ("", ("192.0.2.1",))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResolverUnreadable, match="none: No such file"):
        ResolverSource(str(tmp_path / "none")).current()


def test_a_file_above_the_limit_is_refused(tmp_path: Path) -> None:
    # behaviours.md §20: "file limit 10 MiB"
    path = tmp_path / "resolv.conf"
    with path.open("wb") as file:
        file.truncate(10 * 1024 * 1024 + 1)
    with pytest.raises(ResolverUnreadable, match="at most 10485760 bytes"):
        ResolverSource(str(path)).current()


def test_a_fifo_in_its_place_does_not_stop_the_agent(tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    os.mkfifo(path)
    assert ResolverSource(str(path)).current() == ResolverFile()
