"""The line with which a kubelet gives up: upstream's texts around our problems."""

from __future__ import annotations

import json
from collections.abc import Sequence

from glasslet.config.options import Options
from glasslet.config.problem import ConfigProblem, Step


def failure_text(problems: Sequence[ConfigProblem], options: Options) -> str:
    """The message of upstream: only the first failed step reports."""
    first = min((problem.step for problem in problems), key=list(Step).index)
    told = list(dict.fromkeys(problem.message for problem in problems if problem.step is first))
    together = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    match first:
        case Step.PARSE:
            return told[0] if told[0].startswith("unknown command") else f"failed to parse kubelet flag: {told[0]}"
        case Step.FLAGS:
            return f"failed to validate kubelet flags: {together}"
        case Step.LOAD:
            return f"failed to load kubelet config file, path: {options.config}, error: {together}"
        case Step.MERGE:
            return f"failed to merge kubelet configs: {_with_places(problems)}"
        case Step.GATES:
            return f"failed to set feature gates from initial flags-based config: {together}"
        case Step.LOGGING:
            return f"initialize logging: {together}"
        case Step.VALIDATE:
            path = options.config or options.config_dir or "flags"
            return f"failed to validate kubelet configuration, error: {together}, path: {path}"
        case Step.START:
            return f"failed to run Kubelet: {told[0]}"


def _with_places(problems: Sequence[ConfigProblem]) -> str:
    told = [
        f"failed to load kubelet dropin file, path: {problem.origin.removeprefix('drop-in ')}, error: {problem.message}"
        if not problem.field.startswith("--")
        else problem.message
        for problem in problems
        if problem.step is Step.MERGE
    ]
    return told[0] if len(told) == 1 else f"[{', '.join(told)}]"


def failure_line(text: str) -> str:
    """The log line of a fatal error, as upstream writes it (without the time)."""
    return f'"command failed" err={json.dumps(text, ensure_ascii=False)}'


def problem_lines(problems: Sequence[ConfigProblem]) -> list[str]:
    """One line per problem, with its origin."""
    lines = []
    for problem in problems:
        text = first_line(problem.message)
        named = text if problem.field in text else f"{problem.field}: {text}"
        lines.append(f"  {named}{f' [{problem.origin}]' if problem.origin else ''}")
    return lines


def first_line(text: str) -> str:
    """The text on one line."""
    return " ".join(text.splitlines())
