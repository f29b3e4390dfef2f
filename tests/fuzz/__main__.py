"""The long lane: `scripts/fuzz`."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import time
from pathlib import Path

from tests.fuzz.engine import State, Target, run_for
from tests.fuzz.targets import all_targets


def main() -> int:
    """Runs targets in turn until each has its share of the inputs. Exit code 1: something was found."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description="fuzz every decoder of outside bytes")
    parser.add_argument("--inputs", type=int, default=10_000_000, help="in all, over all targets; default: %(default)s")
    parser.add_argument("--slice", type=float, default=20.0, help="seconds for a target before the next one's turn")
    parser.add_argument("--seconds", type=float, default=1e9, help="for the whole run")
    parser.add_argument("--state", type=Path, default=Path("build/fuzz"), help="where counts and findings are kept")
    parser.add_argument("--only", default="", metavar="TEXT", help="targets whose name contains it")
    parser.add_argument("--report", action="store_true", help="print what is known and run nothing")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    targets = [target for target in all_targets() if given.only in target.name]
    state = State(given.state)
    gc.freeze()
    if not given.report:
        run(targets, state, given)
    return report(targets, state)


def run(targets: list[Target], state: State, given: argparse.Namespace) -> None:
    """Round after round; what slow targets do not reach, fast ones do."""
    end = time.monotonic() + given.seconds
    while time.monotonic() < end:
        done = sum(state.tally(target).inputs for target in targets)
        if done >= given.inputs:
            return
        for target in targets:
            tally = state.tally(target)
            run_for(target, seconds=min(given.slice, end - time.monotonic()), inputs=given.inputs, tally=tally)
            state.keep(target, tally)
        now = sum(state.tally(target).inputs for target in targets)
        print(f"{now:>12,} inputs", flush=True)


def report(targets: list[Target], state: State) -> int:
    """The table, and every finding."""
    print(f"{'target':<28}{'inputs':>12}{'refused':>9}{'us each':>9}{'slowest':>9}  findings")
    total = found = 0
    for target in targets:
        tally = state.tally(target)
        count = max(1, tally.inputs)
        each, refused = tally.seconds / count * 1e6, tally.refused / count
        slowest = tally.slowest * 1000
        print(
            f"{target.name:<28}{tally.inputs:>12,}{refused:>9.0%}{each:>9.0f}{slowest:>6.0f} ms  {len(tally.findings)}"
        )
        total, found = total + tally.inputs, found + len(tally.findings)
    print(f"{'in all':<28}{total:>12,}{'':>27}  {found}")
    for target in targets:
        for finding in state.tally(target).findings:
            print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
