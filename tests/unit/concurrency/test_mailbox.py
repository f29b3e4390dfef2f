"""The one-slot mailbox."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.concurrency.mailbox import Mailbox

pytestmark = pytest.mark.looptime


def box() -> Mailbox[int]:
    return Mailbox(merge=max)


async def test_letters_are_merged_and_taken_as_one() -> None:
    mail = box()
    mail.put(3)
    mail.put(7)
    mail.put(5)
    assert (mail.take(), mail.take()) == (7, None)


async def test_a_reader_wakes_for_a_letter_that_came_before_it_waited() -> None:
    mail = box()
    mail.put(1)
    assert await mail.wait(10) is True


async def test_a_reader_wakes_for_a_letter_that_comes_while_it_waits() -> None:
    mail = box()
    asyncio.get_running_loop().call_later(3, mail.put, 1)
    assert await mail.wait(10) is True
    assert asyncio.get_running_loop().time() == 3


async def test_waiting_ends_when_the_time_is_over() -> None:
    assert await box().wait(5) is False
    assert asyncio.get_running_loop().time() == 5


async def test_a_wake_up_brings_no_letter() -> None:
    mail = box()
    mail.wake()
    assert await mail.wait(1) is True
    assert mail.take() is None
    assert await mail.wait(1) is False, "taking the mail forgets the wake-up"
