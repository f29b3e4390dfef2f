"""Merging of what is mails of a pod."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from glasslet.api.pod_update import UpdateKind
from glasslet.exchange.facts import StatusOverride
from glasslet.pods.updates import Kill, Mail, mail_of, merge
from tests.builders.pod import api_pod, container, deleted, pod, update

PODS = [pod(container(image=f"image:{n}")) for n in range(3)]
kills = st.builds(
    Kill,
    grace=st.none() | st.integers(0, 60),
    verdict=st.none() | st.builds(StatusOverride, phase=st.just("Failed"), reason=st.sampled_from("ab")),
    removed=st.booleans(),
)
mails = st.builds(Mail, pod=st.none() | st.sampled_from(PODS), kill=st.none() | kills)
several = st.lists(mails, min_size=1, max_size=8)


@given(several)
def test_the_newest_spec_wins(mails: list[Mail]) -> None:
    pods = [mail.pod for mail in mails if mail.pod is not None]
    assert reduce(merge, mails).pod == (pods[-1] if pods else None)


@given(several)
def test_a_kill_is_never_lost(mails: list[Mail]) -> None:
    kill = reduce(merge, mails).kill
    assert (kill is not None) == any(mail.kill is not None for mail in mails)
    assert (kill is not None and kill.removed) == any(mail.kill is not None and mail.kill.removed for mail in mails)


@given(several)
def test_grace_only_shrinks(mails: list[Mail]) -> None:
    # behaviours.md §4: "A shorter deletion grace lowers the grace of the worker; ... A longer one is ignored."
    kill = reduce(merge, mails).kill
    graces = [mail.kill.grace for mail in mails if mail.kill is not None and mail.kill.grace is not None]
    assert (kill.grace if kill else None) == min(graces, default=None)


@given(several)
def test_the_first_verdict_stays(mails: list[Mail]) -> None:
    kill = reduce(merge, mails).kill
    said = [mail.kill.verdict for mail in mails if mail.kill is not None and mail.kill.verdict is not None]
    assert (kill.verdict if kill else None) == (said[0] if said else None)


@given(several, st.integers(1, 7))
def test_it_does_not_matter_where_the_reader_looked_in_between(mails: list[Mail], cut: int) -> None:
    left, right = mails[:cut], mails[cut:]
    if right:
        assert merge(reduce(merge, left), reduce(merge, right)) == reduce(merge, mails)


def test_an_ordinary_update_asks_for_the_pod_only() -> None:
    assert mail_of(update(pod(), UpdateKind.UPDATE)) == Mail(pod=pod())


def test_a_removal_asks_for_the_end_with_the_pods_own_grace() -> None:
    # behaviours.md §4: "A pod that vanishes from its source without a deletion mark (manifest removed, relist after a
    # watch gap) is stopped with its spec grace"
    assert mail_of(update(pod(), UpdateKind.REMOVE)).kill == Kill(removed=True)


def test_a_deletion_asks_for_the_end_with_its_grace() -> None:
    one = deleted(api_pod(), grace=4)
    assert mail_of(update(one, UpdateKind.DELETE)).kill == Kill(grace=4)


def test_a_deletion_mark_counts_whatever_the_update_is_called() -> None:
    one = deleted(api_pod(), grace=4)
    assert mail_of(update(one, UpdateKind.ADD)).kill == Kill(grace=4)
