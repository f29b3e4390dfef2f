"""Limits on how often something may happen."""

from __future__ import annotations

from glasslet.concurrency.token_bucket import TokenBucket


def test_a_burst_is_let_through_and_then_refused() -> None:
    bucket = TokenBucket(rate=5, burst=10)
    assert [bucket.take(0) for _ in range(11)] == [True] * 10 + [False]


def test_tokens_come_back_with_time() -> None:
    bucket = TokenBucket(rate=5, burst=1)
    assert bucket.take(0)
    assert not bucket.take(0.1)
    assert bucket.take(0.3)


def test_no_more_than_the_burst_is_saved_up() -> None:
    bucket = TokenBucket(rate=100, burst=2)
    bucket.take(0)
    assert [bucket.take(1000) for _ in range(3)] == [True, True, False]


def test_a_rate_of_zero_refuses_nothing() -> None:
    bucket = TokenBucket(rate=0, burst=0)
    assert all(bucket.take(0) for _ in range(100))


def test_on_credit_the_wait_grows_with_what_was_taken() -> None:
    bucket = TokenBucket(rate=5, burst=1)
    assert [bucket.take_on_credit(0) for _ in range(3)] == [0.0, 0.2, 0.4]
    assert bucket.take_on_credit(0.6) == 0.0
    assert TokenBucket(rate=0, burst=0).take_on_credit(0) == 0.0
