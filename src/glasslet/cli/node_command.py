"""`glasslet node resources`: draws sockets, NUMA nodes and cores, and who has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import click

from glasslet.answers.resources import CPURow, MemoryRow, ResourcesAnswer
from glasslet.answers.words import size_words
from glasslet.cli.agent_client import AgentPlace, find_agent
from glasslet.cli.failure import Failure
from glasslet.cli.output import output_option, printable, show


@click.command("node")
@click.argument("what", metavar="resources", type=click.Choice(["resources"]))
@output_option
@click.pass_obj
def command(place: AgentPlace, what: str, form: str) -> None:
    """Show the node's resources: sockets, NUMA nodes, cores and threads, and which container has which of them.

    A core that all containers share is not drawn by itself; with policy none that is every core.
    """
    answer = find_agent(place).get(f"/node/{what}", ResourcesAnswer)
    if answer.problem:
        raise Failure(answer.problem)
    show(answer, form, lambda: resources_text(answer))


def resources_text(answer: ResourcesAnswer) -> str:
    """The drawing."""
    topology = f"topology {answer.topology_policy}"
    if answer.topology_policy != "none":
        topology += f" (scope {answer.scope})"
    lines = [f"policies: CPU {answer.cpu_policy}, memory {answer.memory_policy}, {topology}"]
    order = sorted(answer.cpus, key=lambda cpu: (cpu.socket, cpu.node, cpu.core, cpu.id))
    for socket, of_socket in groupby(order, key=lambda cpu: cpu.socket):
        lines.append(f"socket {socket}")
        for node, of_node in groupby(of_socket, key=lambda cpu: cpu.node):
            lines += _node(node, list(of_node), answer.memory)
    bare = {row.node for row in answer.memory} - {cpu.node for cpu in answer.cpus}
    for node in sorted(bare):
        lines += _node(node, [], answer.memory)
    if answer.shares:
        lines.append("memory of containers")
        for one in answer.shares:
            nodes = ", ".join(map(str, one.nodes))
            lines.append(f"  {printable(one.owner)}: {size_words(one.size)} of {one.resource} from NUMA node {nodes}")
    return "\n".join(lines)


def _node(node: int, cpus: Sequence[CPURow], memory: Iterable[MemoryRow]) -> list[str]:
    lines = [f"  NUMA node {node}"]
    for row in memory:
        if row.node == node:
            parts = f"{size_words(row.given)} given out, {size_words(row.free)} free, {size_words(row.system)} reserved"
            lines.append(f"    {row.resource}: {parts}, {size_words(row.total)} in all")
    shared: list[int] = []
    for core, threads in groupby(cpus, key=lambda cpu: cpu.core):
        own = list(threads)
        if any(cpu.owners or cpu.reserved for cpu in own):
            lines.append(f"    core {core}: {'; '.join(f'CPU {cpu.id} {_use(cpu)}' for cpu in own)}")
        else:
            shared += [cpu.id for cpu in own]
    if shared:
        lines.append(f"    shared by all other containers: CPUs {_ranges(shared)}")
    return lines


def _use(cpu: CPURow) -> str:
    if cpu.owners:
        return f"of {', '.join(map(printable, cpu.owners))}"
    if cpu.reserved:
        return "reserved, shared" if cpu.shared else "reserved"
    return "shared"


def _ranges(cpus: Iterable[int]) -> str:
    """Ascending ranges, `0-3,5`."""
    found: list[list[int]] = []
    for cpu in sorted(cpus):
        if found and cpu == found[-1][-1] + 1:
            found[-1].append(cpu)
        else:
            found.append([cpu])
    return ",".join(str(one[0]) if len(one) == 1 else f"{one[0]}-{one[-1]}" for one in found)
