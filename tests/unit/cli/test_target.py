"""From what a person types to a pod."""

from __future__ import annotations

import click
import pytest

from glasslet.cli.agent_client import PodName
from glasslet.cli.failure import Failure
from glasslet.cli.target import choose, in_namespace

PODS = [
    PodName("default", "web"),
    PodName("default", "web-2"),
    PodName("default", "job-7"),
    PodName("kube-system", "dns"),
    PodName("kube-system", "job-7"),
]


@pytest.mark.parametrize(
    ("typed", "pod"),
    [
        ("default/web", PodName("default", "web")),
        ("web", PodName("default", "web")),
        ("dn", PodName("kube-system", "dns")),
        ("kube-system/j", PodName("kube-system", "job-7")),
        ("kube-system/job-7", PodName("kube-system", "job-7")),
    ],
)
def test_a_name_or_a_beginning_that_fits_one_pod_means_it(typed: str, pod: PodName) -> None:
    assert choose(typed, PODS) == pod


@pytest.mark.parametrize("typed", ["job-7", "we", "default/w"])
def test_what_fits_several_pods_is_refused_with_their_names(typed: str) -> None:
    with pytest.raises(Failure, match="is ambiguous"):
        choose(typed, [*PODS, PodName("default", "work")] if typed == "we" else PODS)


@pytest.mark.parametrize(("typed", "near"), [("wbe", "default/web"), ("default/jbo-7", "default/job-7")])
def test_a_wrong_name_is_answered_with_the_nearest(typed: str, near: str) -> None:
    with pytest.raises(Failure, match=f"did you mean .*{near}"):
        choose(typed, PODS)


def test_a_name_like_no_other_is_answered_with_what_there_is() -> None:
    with pytest.raises(Failure, match="pods here: default/web"):
        choose("zzzzzz", PODS)


@pytest.mark.parametrize("typed", ["", "/", "default/"])
def test_nothing_means_no_pod(typed: str) -> None:
    with pytest.raises(Failure):
        choose(typed, PODS)


def test_without_pods_the_error_mentions_it() -> None:
    with pytest.raises(Failure, match="there are no pods"):
        choose("web", [])


@pytest.mark.parametrize(
    ("typed", "namespace", "meant"),
    [
        ("web", "", "web"),
        ("web", "default", "default/web"),
        ("default/web", "default", "default/web"),
        ("", "default", ""),
    ],
)
def test_a_namespace_option_completes_the_name(typed: str, namespace: str, meant: str) -> None:
    assert in_namespace(typed, namespace) == meant


def test_two_different_namespaces_are_refused() -> None:
    with pytest.raises(click.UsageError, match="names another namespace"):
        in_namespace("default/web", "kube-system")
