"""`glasslet tasks`: lists the tasks of the agent."""

from __future__ import annotations

from pathlib import Path

import click

from glasslet.answers.agent import TasksAnswer
from glasslet.cli.agent_client import find_agent
from glasslet.cli.output import fitted, output_option, show, table

_HEADERS = ("TASK", "POD", "WAITS FOR", "AT")


@click.command("tasks")
@output_option
@click.pass_obj
def command(root_dir: Path | None, form: str) -> None:
    """List the tasks of the agent: name, pod, wait, and the position in the code."""
    answer = find_agent(root_dir).get("/tasks", TasksAnswer)
    rows = [[task.name, task.pod or "-", task.wait or "-", task.at] for task in answer.tasks]
    show(answer, form, lambda: table(_HEADERS, fitted(rows, _HEADERS, columns=range(len(_HEADERS)))))
