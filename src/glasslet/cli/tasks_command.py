"""`glasslet tasks`: lists the tasks of the agent."""

from __future__ import annotations

import click

from glasslet.answers.agent import TasksAnswer
from glasslet.cli.agent_client import AgentPlace, find_agent
from glasslet.cli.output import fitted, output_option, show, table

_HEADERS = ("TASK", "POD", "WAITS FOR", "AT")


@click.command("tasks")
@output_option
@click.pass_obj
def command(place: AgentPlace, form: str) -> None:
    """List the tasks of the agent: name, pod, wait, and the position in the code."""
    answer = find_agent(place).get("/tasks", TasksAnswer)
    headers: tuple[str, ...] = _HEADERS
    rows = [[task.name, task.pod or "-", task.wait or "-", task.at] for task in answer.tasks]
    if any(task.node for task in answer.tasks):
        headers = (*_HEADERS, "NODE")
        rows = [[*shown, task.node] for shown, task in zip(rows, answer.tasks, strict=True)]
    show(answer, form, lambda: table(headers, fitted(rows, headers, columns=range(len(headers)))))
