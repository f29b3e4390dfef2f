"""Conditions in CEL in their own process: answers, refusals with their place, and an end for those that loop."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from glasslet.stops.conditions import BadCondition, ConditionFailed, ConditionTooSlow
from glasslet.stops.evaluation import CELConditions

TREE: dict[str, object] = {
    "namespace": "shop",
    "container": "main",
    "attempt": 2,
    "after": False,
    "pod": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}, {"name": "side"}]}},
    "plan": {"actions": [{"action": "KillContainer", "container": "main"}]},
    "request": None,
}
LOOPS = (
    "[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, "
    "[1,2,3,4,5,6,7,8,9,10].map(d, [1,2,3,4,5,6,7,8,9,10].map(e, a*b*c*d*e))))).size() > 0"
)


@pytest.fixture
async def conditions() -> AsyncIterator[CELConditions]:
    one = CELConditions(seconds=1.0)
    yield one
    process = one._process
    one.idle()
    if process is not None:
        await process.wait()


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ('container == "main" && attempt >= 2', True),
        ('container == "side" || attempt < 2', False),
        ('pod.metadata.labels["app"] == "web"', True),
        ('pod.spec.containers.exists(c, c.name == "side")', True),
        ('has(pod.spec.volumes) || plan.actions[0].action == "KillContainer"', True),
        ('namespace.startsWith("sh") && namespace.matches("^s.*p$") && !after', True),
        ("request == null", True),
    ],
)
async def test_a_condition_is_evaluated_over_the_tree(conditions: CELConditions, condition: str, holds: bool) -> None:
    await conditions.check(condition)
    assert await conditions.holds(condition, TREE) is holds


@pytest.mark.parametrize(
    ("condition", "column", "says"),
    [
        ('container = "main"', 11, "wrongly"),
        ('container == "main', 14, "wrongly"),
        ("attempt > 1 && contaner == 'x'", 16, "no field contaner"),
        ("pod.spec.containers.exists(c, d.name == 'x')", 31, "no field d"),
        ("length(pod) > 1", 1, "no function length"),
    ],
)
async def test_a_wrong_expression_is_refused_with_its_place(
    conditions: CELConditions, condition: str, column: int, says: str
) -> None:
    with pytest.raises(BadCondition, match=says) as caught:
        await conditions.check(condition)
    assert (caught.value.line, caught.value.column) == (1, column)


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("pod.spec.nodeName == 'x'", "nodeName"),
        ("attempt + 1", "not a boolean"),
        ("plan.actions[7].action == 'x'", "index"),
    ],
)
async def test_a_condition_without_an_answer_says_so(conditions: CELConditions, condition: str, says: str) -> None:
    await conditions.check(condition)
    with pytest.raises(ConditionFailed, match=says):
        await conditions.holds(condition, TREE)


async def test_a_condition_that_loops_is_ended_and_the_next_one_is_answered(conditions: CELConditions) -> None:
    await conditions.check(LOOPS)
    began = time.monotonic()
    with pytest.raises(ConditionTooSlow):
        await conditions.holds(LOOPS, TREE)
    assert time.monotonic() - began < 5
    assert await conditions.holds("attempt == 2", TREE)


async def test_a_condition_that_is_nested_too_deeply_gets_no_answer(conditions: CELConditions) -> None:
    nested = "(" * 400 + "true" + ")" * 400
    with pytest.raises((BadCondition, ConditionFailed)):
        await conditions.check(nested)
    assert await conditions.holds("true", TREE)
