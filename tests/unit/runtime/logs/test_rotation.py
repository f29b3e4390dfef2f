"""What happens to rotated files, and in which order."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasslet.runtime.logs.rotation import plan_rotation, rotated_name

ONE, TWO, THREE, FOUR = (f"0.log.20260101-00000{n}" for n in range(1, 5))


@pytest.mark.parametrize(
    ("files", "max_files", "remove", "compress"),
    [
        pytest.param([], 5, (), (), id="nothing was rotated yet"),
        pytest.param([ONE], 5, (), (ONE,), id="what is not compressed gets compressed"),
        pytest.param([ONE + ".gz", TWO], 5, (), (TWO,), id="what is compressed stays"),
        pytest.param([ONE, ONE + ".gz"], 5, (ONE,), (), id="an original that is compressed already goes"),
        pytest.param([ONE + ".tmp", ONE], 5, (ONE + ".tmp",), (ONE,), id="half-done files go"),
        pytest.param([TWO, ONE + ".gz", THREE, FOUR], 4, (ONE + ".gz", TWO), (THREE, FOUR), id="the oldest go first"),
        pytest.param([ONE], 2, (ONE,), (), id="with two files only the current one and the next rotated one remain"),
        pytest.param(
            [ONE + ".tmp", ONE, ONE + ".gz", TWO], 3, (ONE, ONE + ".tmp", ONE + ".gz"), (TWO,), id="leftovers first"
        ),
    ],
)
def test_old_files_make_room(
    files: list[str], max_files: int, remove: tuple[str, ...], compress: tuple[str, ...]
) -> None:
    # behaviours.md §18: "Order: .tmp files and already compressed originals removed, old ones cut to maxFiles-2,
    # uncompressed rotated files gzipped"
    plan = plan_rotation(files, max_files)
    assert (plan.remove, plan.compress) == (remove, compress)


@given(
    st.sets(st.sampled_from([n + s for n in (ONE, TWO, THREE, FOUR) for s in ("", ".gz", ".tmp")])), st.integers(2, 6)
)
def test_after_the_plan_at_most_two_fewer_than_allowed_are_left(files: set[str], max_files: int) -> None:
    plan = plan_rotation(files, max_files)
    left = files - set(plan.remove)
    assert len(left) <= max_files - 2
    assert set(plan.compress) <= left
    assert not any(name.endswith(".tmp") for name in left)


def test_the_rotated_name_carries_the_time() -> None:
    # behaviours.md §18: "current renamed to `<n>.log.<YYYYMMDD-HHMMSS>` (local time)"
    assert rotated_name("/x/0.log", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "/x/0.log.20260102-030405"
