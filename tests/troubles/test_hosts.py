"""The node around the agent in trouble: its clock, its disks, its DNS configuration."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from glasslet.answers.states import Rule
from tests.fakes.agent import Agent, busybox_pod, running
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.registry import Registry
from tests.faults.test_disk import fill, make_read_only, make_writable, small_disk
from tests.troubles.table import Trouble, each_chosen
from tests.troubles.world import World

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

AREA = "Clock, disks and DNS of the node"


@contextlib.contextmanager
def world_of(agent: Agent, containerd: PrivateContainerd) -> Iterator[World]:
    """This agent, ready."""
    with Registry(agent.folder) as registry, running(agent, containerd):
        asyncio.run(agent.wait_until_ready())
        yield World(agent, containerd, registry, agent.folder)


JUMP = Trouble(
    name="clock-jump",
    made="the node's clock is set forward by an hour",
    rule=Rule.FINDING,
    says=("the node's clock jumped forward by 3600 s",),
)


@each_chosen((JUMP,))
def test_a_clock_that_jumps_is_found_with_both_times(
    containerd: PrivateContainerd, tmp_path: Path, trouble: Trouble
) -> None:
    agent = Agent(tmp_path / "a", containerd)
    agent.program = (sys.executable, "-m", "tests.fakes.jumping_clock", str(tmp_path / "jump"))
    with world_of(agent, containerd) as world:
        (tmp_path / "jump").write_text("3600")
        world.shows_among_all(trouble)


TOO_MANY_SERVERS = Trouble(
    name="dns-servers",
    made="the pod's and the node's name servers together are more than 3",
    rule=Rule.FINDING,
    says=("default/dns-servers", "Nameserver limits were exceeded"),
    pod=lambda _: busybox_pod(
        "dns-servers", dnsPolicy="Default", dnsConfig={"nameservers": ["10.0.0.1", "10.0.0.2", "10.0.0.3"]}
    ),
)
TOO_MANY_DOMAINS = Trouble(
    name="dns-domains",
    made="the pod's and the node's search domains together are more than 32",
    rule=Rule.FINDING,
    says=("default/dns-domains", "Search Line limits were exceeded"),
    pod=lambda _: busybox_pod(
        "dns-domains", dnsPolicy="Default", dnsConfig={"searches": [f"s{number}.example" for number in range(32)]}
    ),
)


@each_chosen((TOO_MANY_SERVERS, TOO_MANY_DOMAINS))
def test_what_is_left_out_of_a_pods_dns_is_found(
    containerd: PrivateContainerd, tmp_path: Path, trouble: Trouble
) -> None:
    agent = Agent(tmp_path / "a", containerd)
    (agent.folder / "resolv.conf").write_text("nameserver 127.0.0.1\nsearch node.example\n")
    with world_of(agent, containerd) as world:
        world.put(trouble)
        world.shows_among_all(trouble)


def read_only(agent: Agent) -> Callable[[], None]:
    make_read_only(agent.root)
    return lambda: make_writable(agent.root)


def full(agent: Agent) -> Callable[[], None]:
    ballast = fill(agent.root)
    return ballast.unlink


def without_inodes(agent: Agent) -> Callable[[], None]:
    subprocess.run(["mount", "-o", "remount,nr_inodes=1000", str(agent.root.parent)], check=True)
    many = agent.root / "many"
    many.mkdir()
    with contextlib.suppress(OSError):
        for number in range(2000):
            (many / str(number)).touch()
    return lambda: shutil.rmtree(many)


def on_disk(name: str, made: str, rule: Rule, *says: str) -> Trouble:
    """A pod that starts while the disk of the agent's root directory is so."""
    return Trouble(name=name, made=made, rule=rule, says=says, pod=lambda _: busybox_pod(name))


DISKS: dict[Trouble, Callable[[Agent], Callable[[], None]]] = {
    on_disk("root-read-only", "the disk of the root directory is read-only", Rule.VOLUME_NOT_READY,
            "the pod's directories could not be made (", "Read-only file system"): read_only,
    on_disk("root-full", "the disk of the root directory is full", Rule.CONFIG_ERROR,
            "the agent cannot write its files below its root directory: ", "o space left"): full,
    on_disk("root-inodes", "the disk of the root directory has no inode left",
            Rule.VOLUME_NOT_READY, "the pod's directories could not be made (", "no inode is left on the disk of ")
    : without_inodes,
}  # fmt: skip
TROUBLES = (JUMP, TOO_MANY_SERVERS, TOO_MANY_DOMAINS, *DISKS)


@each_chosen(tuple(DISKS))
def test_a_pod_that_the_agents_disk_stops_gets_the_cause(
    containerd: PrivateContainerd, tmp_path: Path, trouble: Trouble
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        agent = Agent(tmp_path / "a", containerd)
        agent.root = disk / "root"
        with world_of(agent, containerd) as world:
            mend = DISKS[trouble](agent)
            try:
                world.put(trouble)
                world.shows(trouble)
            finally:
                mend()
