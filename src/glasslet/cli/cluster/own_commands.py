"""Commands that only `kubectl glass` has."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import click

from glasslet.answers.agent import AgentAnswer
from glasslet.answers.states import VerdictState
from glasslet.answers.why import VerdictAnswer
from glasslet.answers.wire import WireMessage
from glasslet.cli.agent_client import GLASS
from glasslet.cli.cluster.app import cluster_client, connection_options
from glasslet.cli.cluster.clients import ClusterClient, NodeClient
from glasslet.cli.cluster.refusals import NodeSilent
from glasslet.cli.output import fitted, output_option, show, table
from glasslet.cli.web_command import has_display, no_browser_option, port_option, serve

_HEADERS = ("NODE", "STATE", "AGENT", "PODS", "WHY")
_STYLES = {VerdictState.FINE: "green", VerdictState.FAILING: "red"}


class NodeRow(WireMessage, frozen=True, kw_only=True):
    """One node: its agent, and its verdict, None if the agent does not answer (`error`)."""

    node: str
    error: str = ""
    agent: AgentAnswer | None = None
    why: VerdictAnswer | None = None


class NodesAnswer(WireMessage, frozen=True, kw_only=True):
    """All nodes; those with trouble first."""

    nodes: tuple[NodeRow, ...] = ()


def of(name: str) -> click.Command:
    """The command of that name."""
    return {"nodes": nodes, "web": page}[name]


@click.command("nodes", params=connection_options(hidden=True))
@output_option
@click.pass_context
def nodes(ctx: click.Context, /, form: str, **given: Any) -> None:
    """List the nodes: does each agent answer, and why is each node as it is. Those with trouble come first."""
    assert ctx.parent is not None
    with cluster_client(ctx.parent.params, {**given, "scope_all_nodes": True}) as client:
        answer = asked(client)
        show(answer, form, lambda: nodes_text(answer))
        if client.silent:
            # The table has said so.
            client.silent.clear()
            raise SystemExit(NodeSilent.exit_code)


@click.command("web", params=connection_options(hidden=True))
@click.argument("node")
@port_option
@no_browser_option
@click.pass_context
def page(ctx: click.Context, /, node: str, port: int, no_browser: bool, **given: Any) -> None:
    """Serve the page of NODE's agent on 127.0.0.1 until Ctrl+C, and open it in a browser if there is one.

    What it shows and does needs your rights on nodes/proxy: get, and create to hold pods. The address has a token that
    works once; other people of this machine cannot use your rights.
    """
    assert ctx.parent is not None
    with cluster_client(ctx.parent.params, {**given, "scope_node": node}) as client:
        agent = client.node(node)
        agent.get("/agent", AgentAnswer)
        below = agent.prefix.removesuffix(GLASS)
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve(agent.socket, port, browser=not no_browser and has_display(), below=below))


def asked(client: ClusterClient) -> NodesAnswer:
    """The row of each node."""

    def question(node: NodeClient) -> NodeRow:
        agent, why = node.get("/agent", AgentAnswer), node.get("/node/why", VerdictAnswer)
        return NodeRow(node=node.node, agent=agent, why=why)

    rows = list(client.ask_nodes(question).values())
    rows += [NodeRow(node=node, error=failure.message) for node, failure in client.silent.items()]
    return NodesAnswer(nodes=tuple(sorted(rows, key=_trouble_first)))


def nodes_text(answer: NodesAnswer) -> str:
    """The table."""
    rows, styles = [], []
    for row in answer.nodes:
        state = row.why.state if row.why is not None else "silent"
        pods = str(row.agent.desired_pods) if row.agent is not None else "-"
        why = row.why.sentence if row.why is not None else row.error
        rows.append([row.node, state, row.agent.version if row.agent is not None else "-", pods, why])
        styles.append(["", _STYLES.get(row.why.state, "yellow") if row.why is not None else "red", "", "", ""])
    return table(_HEADERS, fitted(rows, _HEADERS, columns=(0, 4)), styles)


def _trouble_first(row: NodeRow) -> tuple[bool, str]:
    return (row.why is not None and row.why.state == VerdictState.FINE, row.node)
