"""`glasslet up`: runs pods from manifests on this machine."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from glasslet.answers.agent import AgentAnswer, ManifestProblem
from glasslet.answers.box import BoxAnswer
from glasslet.answers.pods import PodRow, PodsAnswer
from glasslet.cli.failure import Failure, NotInTime
from glasslet.cli.options import state_option
from glasslet.cli.output import live_text, on_terminal, printable, write
from glasslet.cli.ps_command import changes, pods_text
from glasslet.cli.standalone import manifests
from glasslet.cli.standalone.agent_process import AgentOptions, AgentProcess
from glasslet.cli.standalone.box_process import BoxProcess, is_url, preview
from glasslet.cli.standalone.manifests import broken_manifest_lines
from glasslet.cli.standalone.private_containerd import PrivateContainerd, gateway_of, services_network
from glasslet.cli.standalone.state_dir import DEFAULT, RuntimeChoice, StateDir

_LOOK_SECONDS = 0.25
_NOTICE_SECONDS = 3.0


class UpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `up`."""

    paths: tuple[str, ...]
    container_runtime_endpoint: str
    image_archives: tuple[Path, ...]
    sandbox_image: str
    until_ready: float | None
    detach: bool
    port: int
    healthz_port: int
    hostname: str
    verbosity: int
    dry_run: bool


@click.command("up")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@state_option
@click.option(
    "--container-runtime-endpoint",
    metavar="ENDPOINT",
    default="",
    help="A running runtime. Default: a private containerd.",
)
@click.option(
    "--image-archive",
    "image_archives",
    metavar="FILE",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An image archive (OCI or docker) to import first; may be repeated.",
)
@click.option(
    "--sandbox-image",
    metavar="IMAGE",
    default="registry.k8s.io/pause:3.10",
    show_default=True,
    help="Sandbox image of the private containerd.",
)
@click.option(
    "--until-ready",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    help="Return when all pods are settled; fail after so many seconds.",
)
@click.option("--detach", is_flag=True, help="Leave the agent running in the background.")
@click.option(
    "--port",
    metavar="PORT",
    default=10250,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="HTTPS port; 0: none.",
)
@click.option(
    "--healthz-port",
    metavar="PORT",
    default=10248,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Health port; 0: none.",
)
@click.option("--hostname", metavar="NAME", default="", help="The node's name. Default: the machine's.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@click.option("-v", "--verbosity", metavar="N", default=2, show_default=True, help="Log verbosity of the agent.")
def command(state: Path, **options: Any) -> None:
    """Run pods from manifests on this machine, without a cluster.

    PATH is a manifest, a folder of manifests, a URL, or - for standard input. Deployments, StatefulSets, DaemonSets,
    Jobs and CronJobs run with all their pods on this machine; ConfigMaps, Secrets, claims and Services are there for
    them; a line says what is not done. A changed file changes what runs. Pods of earlier calls keep running. Ctrl-C
    ends the agent, not the pods; `glasslet down` removes them. With --detach or --until-ready a broken manifest is an
    error (exit code 1) that lists all its problems; the other pods run.
    """
    if os.geteuid() != 0:
        raise Failure("only root can run pods; use sudo")
    bring_up(StateDir(state), UpOptions(**options))


def bring_up(state: StateDir, options: UpOptions) -> None:
    """All of `up`, in order: files, runtime, images, agent, controllers, table."""
    manifests.wanted_files([path for path in options.paths if path != "-" and not is_url(path)])
    if options.dry_run:
        state.path.mkdir(parents=True, exist_ok=True)
        raise SystemExit(preview(state, [file.file for file in manifests.sources_of(state, options.paths)]))
    state.make()
    agent, box = AgentProcess(state), BoxProcess(state)
    endpoint = _runtime(state, options)
    alone = not box.sources.files
    manifests.add(state.manifests, manifests.sources_of(state, options.paths), box)
    names = _names(state, options, box)
    joined = agent.running() is not None and agent.client.answers()
    last = agent.last_options()
    if joined and alone and names and last is not None:
        # New pods find names from now on. Pods run on while the agent starts again.
        agent.stop()
        agent.start(replace(last, names=names))
    if joined:
        write(f"the agent already runs (pid {agent.running()}); the pods are added")
    else:
        agent.start(
            AgentOptions(
                endpoint=endpoint,
                manifests=state.manifests,
                port=options.port,
                healthz_port=options.healthz_port,
                hostname=options.hostname,
                verbosity=options.verbosity,
                names=names,
            )
        )
    box.ensure()
    watching = PodWatch(agent, manifests.FollowedFolders(state.manifests, options.paths, box))
    if options.detach:
        if options.until_ready is not None:
            watching.run(until_ready=options.until_ready)
        else:
            watching.until_read()
        write(_farewell(state, agent))
        watching.refuse_broken()
        return
    try:
        watching.run(until_ready=options.until_ready)
    finally:
        if joined:
            ending = f"`glasslet down{_state_option(state)}` ends it and its pods"
            write(f"the agent keeps running (pid {agent.running()}); {ending}")
        else:
            box.stop()
            agent.stop()
            write(f"the agent has ended, its pods keep running; `glasslet down{_state_option(state)}` removes them")
    if options.until_ready is not None:
        watching.refuse_broken()


class PodWatch:
    """Shows the pods until they are settled, or until Ctrl-C or TERM."""

    def __init__(self, agent: AgentProcess, folders: manifests.FollowedFolders) -> None:
        self.agent = agent
        self.folders = folders
        self.box = folders.box
        self.workloads = BoxAnswer()
        self.said: set[str] = set()
        self.ended = False
        self.began = time.monotonic()
        self.broken: tuple[ManifestProblem, ...] = ()

    def run(self, *, until_ready: float | None) -> None:
        """Raises NotInTime if pods are not settled within `until_ready` seconds, Failure if the agent ends."""
        deadline = time.monotonic() + until_ready if until_ready is not None else None
        with ExitStack() as stack:
            for number in (signal.SIGINT, signal.SIGTERM):
                stack.callback(signal.signal, number, signal.signal(number, self._end))
            show = self._shower(stack)
            while not self.ended:
                self.folders.update()
                pods, agent = self._look()
                show(pods, [*broken_manifest_lines(self.broken), *workload_lines(self.workloads)])
                if deadline is not None and agent is not None and self._settled(pods, agent):
                    return
                if deadline is not None and time.monotonic() > deadline:
                    left = _unsettled(pods, self.workloads)
                    raise NotInTime(f"not settled after {until_ready:g} s: {left}")
                time.sleep(_LOOK_SECONDS)

    def until_read(self) -> None:
        """Returns when the agent has read the manifests, after a few seconds at the latest."""
        while not self.ended:
            pods, agent = self._look()
            if agent is not None and self._complete(pods, agent):
                return
            time.sleep(_LOOK_SECONDS)

    def refuse_broken(self) -> None:
        """Raises Failure with every problem of every file that no pod came of."""
        wrong = [finding.text for finding in self.workloads.findings if finding.broken]
        if wrong:
            lines = [*(printable(line) for line in broken_manifest_lines(self.broken)), *map(printable, wrong)]
            count = "1 document is" if len(lines) == 1 else f"{len(lines)} documents are"
            raise Failure("\n".join([f"{count} broken; all others run", *lines]))
        if self.broken:
            files = len({problem.file for problem in self.broken})
            count = "1 manifest is" if files == 1 else f"{files} manifests are"
            lines = [printable(line) for line in broken_manifest_lines(self.broken)]
            raise Failure("\n".join([f"{count} broken; the pods of all others run", *lines]))

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.ended = True

    def _look(self) -> tuple[Sequence[PodRow], AgentAnswer | None]:
        """The pods, and the agent; None when it does not answer now. Raises Failure if it has ended."""
        try:
            pods, agent = self.agent.client.get("/pods", PodsAnswer).pods, self.agent.facts()
        except Failure:
            if self.ended or self.agent.running() is not None:
                return (), None
            raise self.agent.failed("the agent has ended") from None
        self.broken = agent.broken_manifests
        self._read_workloads()
        return pods, agent

    def _read_workloads(self) -> None:
        """What the controllers say; a document that is not done as written is told once."""
        answer = self.box.status()
        if answer is None:
            self.workloads = BoxAnswer()
            return
        self.workloads = answer
        for finding in answer.findings:
            if not finding.broken and finding.text not in self.said:
                self.said.add(finding.text)
                write(printable(finding.text))

    def _settled(self, pods: Sequence[PodRow], agent: AgentAnswer) -> bool:
        """All pods of the manifests are there and settled."""
        complete = self._complete(pods, agent) and agent.ready and len(pods) >= agent.desired_pods
        return complete and all(row.settled for row in pods) and self.workloads.settled

    def _complete(self, pods: Sequence[PodRow], agent: AgentAnswer) -> bool:
        """Each manifest has a pod or is broken. A second pod of the same name blocks this for a while only."""
        if self.box.sources.files and self.workloads.files == () and not self.workloads.problem:
            return False
        manifests_here = sum(not entry.name.startswith(".") for entry in self.folders.folder.iterdir())
        accounted = len(pods) + len({problem.file for problem in agent.broken_manifests})
        return accounted >= manifests_here or time.monotonic() > self.began + _NOTICE_SECONDS

    @staticmethod
    def _shower(stack: ExitStack) -> Callable[[Sequence[PodRow], list[str]], None]:
        if on_terminal():
            shown = stack.enter_context(live_text())
            return lambda pods, broken: shown(pods_text(pods, broken, datetime.now(UTC)))
        before: dict[str, tuple[str, ...]] = {}
        said: set[str] = set()

        def lines(pods: Sequence[PodRow], broken: list[str]) -> None:
            for line in changes(before, pods, datetime.now(UTC)):
                write(line)
            for line in broken:
                if line not in said:
                    write(printable(line))
            said.clear()
            said.update(broken)

        return lines


def _runtime(state: StateDir, options: UpOptions) -> str:
    """The runtime's endpoint. Starts the private containerd and imports the images."""
    named = options.container_runtime_endpoint
    before = state.recall()
    if not named and before is not None and not before.private and AgentProcess(state).running() is not None:
        return before.endpoint
    if named:
        if options.image_archives:
            raise Failure("--image-archive: only for the private containerd; use your runtime's own tool")
        state.remember(RuntimeChoice(endpoint=named, private=False))
        return named
    containerd = PrivateContainerd(state, sandbox_image=options.sandbox_image)
    containerd.ensure()
    state.remember(RuntimeChoice(endpoint=containerd.endpoint, private=True))
    for archive in options.image_archives:
        containerd.import_archive(archive)
    return containerd.endpoint


def _names(state: StateDir, options: UpOptions, box: BoxProcess) -> str:
    """The address at which pods find the names of services; "" without workloads or the private containerd."""
    choice = state.recall()
    private = choice is not None and choice.private
    if not private:
        return ""
    subnet = PrivateContainerd(state, sandbox_image=options.sandbox_image).subnet
    if not box.sources.files or not subnet:
        return ""
    box.place(gateway=gateway_of(subnet), services=services_network(subnet))
    return box.sources.gateway


def workload_lines(answer: BoxAnswer) -> list[str]:
    """The workloads that are not as they should be, and what keeps the controllers from working."""
    lines = [f"workloads: {answer.problem}"] if answer.problem else []
    for row in answer.workloads:
        if not row.settled or row.failed:
            note = f", {row.note}" if row.note else ""
            lines.append(f"{row.kind} {row.namespace}/{row.name}: {row.ready} of {row.wanted}{note}")
    return lines


def _unsettled(pods: Sequence[PodRow], workloads: BoxAnswer) -> str:
    names = [f"{row.namespace}/{row.name} ({row.now or row.phase})" for row in pods if not row.settled]
    names += [line for line in workload_lines(workloads) if not names]
    return ", ".join(names) or "no pods yet"


def _farewell(state: StateDir, agent: AgentProcess) -> str:
    root = "" if state.path == DEFAULT else f"export GLASSLET_ROOT={state.root_dir}; "
    return (
        f"the agent runs in the background (pid {agent.running()}, log {state.agent_log})\n"
        f"list: {root}glasslet ps\nstop: glasslet down{_state_option(state)}"
    )


def _state_option(state: StateDir) -> str:
    return "" if state.path == DEFAULT else f" --state {state.path}"
