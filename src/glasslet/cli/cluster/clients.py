"""Clients that ask the agents of a cluster: of one node, or of many side by side."""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, cast
from urllib.parse import quote, unquote

import msgspec
from msgspec.structs import replace

from glasslet.answers.agent import AgentAnswer, ManifestProblem
from glasslet.answers.trace import RecordsAnswer
from glasslet.answers.why import TroublesAnswer
from glasslet.answers.wire import WireMessage
from glasslet.cli.agent_client import GLASS, AgentClient, PodName
from glasslet.cli.cluster.objects import ApiObjects, PodObject
from glasslet.cli.cluster.refusals import NodeSilent, node_refusal
from glasslet.cli.failure import AgentNotRunning, Failure

T = TypeVar("T", bound=WireMessage)

_AT_ONCE = 16
_MANY_NODES_SECONDS = 20.0
"""One node that hangs must not hold up the answers of all others for long."""
_POD_PATH = re.compile(r"/pods/([^/?]+)/([^/?]+)(?:[/?]|$)")


class ClusterScope(msgspec.Struct, frozen=True, kw_only=True):
    """Where a command looks. `node`: one node, "" for none in particular; `all_nodes`: each node of the cluster;
    `namespace`: "" for all."""

    namespace: str = ""
    node: str = ""
    all_nodes: bool = False


class NodeClient(AgentClient):
    """One node's agent, through the API server's node proxy."""

    def __init__(self, socket_path: Path, node: str, *, seconds: float = 60.0) -> None:
        super().__init__(socket_path.parent)
        self.socket = socket_path
        self.node = node
        self.prefix = f"/api/v1/nodes/{quote(node, safe='')}/proxy{GLASS}"
        self.place = f"on {node}"
        self.answer_seconds = seconds

    def refusal(self, status: int, data: bytes) -> Failure:
        """As the base, with refusals on the way."""
        return node_refusal(self.node, status, data) or super().refusal(status, data)

    def unreachable(self, why: str) -> Failure:
        """See the base."""
        return NodeSilent(f"{self.node} does not answer: {why}")


class ClusterClient(AgentClient):
    """All agents of a cluster as one: a question about a pod goes to the pod's node, others go to the nodes of the
    scope, side by side, and their answers are put together. `silent`: nodes that did not answer, and why."""

    def __init__(self, socket_path: Path, scope: ClusterScope) -> None:
        super().__init__(socket_path.parent)
        self.objects = ApiObjects(socket_path)
        self.scope = scope
        self.silent: dict[str, Failure] = {}
        self._socket_path = socket_path
        self._nodes: dict[PodName, str] = {}
        self.place = f"on {scope.node}" if scope.node else f"in namespace {scope.namespace}" if scope.namespace else ""

    def pod_names(self, typed: str) -> list[PodName]:
        """The pod of that name; without one, those of its namespace."""
        if self.scope.node:
            return self._remembered(self.scope.node, self.node(self.scope.node).pod_names(typed))
        namespace, _, name = typed.rpartition("/")
        namespace = namespace or self.scope.namespace
        found = self.objects.pod(PodName(namespace, name)) if namespace and name else None
        pods = [found] if found is not None else self.objects.pods(namespace)
        for pod in pods:
            self._nodes[pod.pod] = pod.node
        return [pod.pod for pod in pods]

    def recorded_pod_names(self, typed: str) -> tuple[list[PodName], list[PodName]]:
        """As `pod_names`. Only if none of them fits, the nodes are asked for records of earlier pods."""
        living = self.pod_names(typed)
        name = typed.rpartition("/")[2]
        if any(pod.name.startswith(name) for pod in living):
            return living, living
        recorded: list[PodName] = []
        for node, answer in self.ask_nodes(lambda client: client.get("/records", RecordsAnswer)).items():
            recorded += self._remembered(node, [PodName(row.namespace, row.name) for row in answer.records])
        return living, recorded

    def node(self, name: str) -> NodeClient:
        """The client of one node."""
        return NodeClient(self._socket_path, name)

    def node_of(self, pod: PodName) -> str:
        """The pod's node. Raises Failure if it has none."""
        if self.scope.node:
            return self.scope.node
        node = self._nodes.get(pod)
        if node is None:
            found = self.objects.pod(pod)
            if found is None:
                raise Failure(f"no pod {pod} in the cluster")
            node = self._nodes[pod] = found.node
        if not node:
            found = self.objects.pod(pod)
            why = f": {found.unscheduled}" if found is not None and found.unscheduled else ""
            raise Failure(f"{pod} has no node yet, so that no agent knows of it; the scheduler has not placed it{why}")
        return node

    def nodes(self) -> list[str]:
        """The nodes of the scope: the one named, those of the namespace's pods, or all."""
        if self.scope.node:
            return [self.scope.node]
        if self.scope.all_nodes or not self.scope.namespace:
            return self.objects.nodes()
        return sorted({pod.node for pod in self.objects.pods(self.scope.namespace) if pod.node})

    def unplaced(self) -> list[PodObject]:
        """Pods of the scope that have no node."""
        if self.scope.node:
            return []
        return [pod for pod in self.objects.pods(self.scope.namespace) if not pod.node]

    def ask_nodes(self, question: Callable[[NodeClient], T]) -> dict[str, T]:
        """The answer of each node of the scope, asked side by side. Those that do not answer are in `silent`; raises
        Failure when none does."""
        names = self.nodes()

        def ask(name: str) -> T | Failure:
            try:
                return question(NodeClient(self._socket_path, name, seconds=_MANY_NODES_SECONDS))
            except Failure as failure:
                return failure

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            said = dict(zip(names, pool.map(ask, names), strict=True))
        failed = {name: answer for name, answer in said.items() if isinstance(answer, Failure)}
        if failed and len(failed) == len(names):
            raise _of_all(failed)
        self.silent.update(failed)
        return {name: answer for name, answer in said.items() if not isinstance(answer, Failure)}

    def broken_manifests(self) -> tuple[ManifestProblem, ...]:
        """Manifests belong to nodes: those of the nodes that were asked for, each with its node."""
        if not (self.scope.node or self.scope.all_nodes):
            return ()
        answers = self.ask_nodes(lambda client: client.get("/agent", AgentAnswer))
        return tuple(
            replace(problem, file=f"{node}:{problem.file}")
            for node, answer in answers.items()
            for problem in answer.broken_manifests
        )

    def stream(self, path: str, **query: str) -> Iterator[bytes]:
        """Of one node."""
        return self._one(path).stream(path, **query)

    def _request(self, method: str, path: str, body: bytes | None, kind: type[T]) -> T:
        if _POD_PATH.match(path) or self.scope.node:
            return self._one(path)._request(method, path, body, kind)
        if method != "GET" or not _can_be_joined(kind):
            pod = named_pod(body)
            node = self.node(self.node_of(pod)) if pod is not None else self._only_node()
            return node._request(method, path, body, kind)
        answers = self.ask_nodes(lambda client: client._request(method, path, body, kind))
        return _one_joined(kind, answers)

    def _connect(self) -> http.client.HTTPConnection:
        raise AssertionError("the nodes' clients connect")

    def _one(self, path: str) -> NodeClient:
        pod = _POD_PATH.match(path)
        return self.node(self.node_of(PodName(unquote(pod[1]), unquote(pod[2])))) if pod else self._only_node()

    def _only_node(self) -> NodeClient:
        names = self.nodes()
        if len(names) != 1:
            listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
            raise Failure(f"this question is for one node; name it with --node: {listed or 'there is none'}")
        return self.node(names[0])

    def _remembered(self, node: str, pods: list[PodName]) -> list[PodName]:
        self._nodes.update(dict.fromkeys(pods, node))
        return pods


class _NamesPod(msgspec.Struct, frozen=True):
    """A request that may name one pod."""

    pod: str = ""
    namespace: str = ""


def named_pod(body: bytes | None) -> PodName | None:
    """The pod that a request is about; None if it names none, or a pattern."""
    if not body:
        return None
    wanted = msgspec.json.decode(body, type=_NamesPod)
    namespace, _, name = wanted.pod.rpartition("/")
    namespace = namespace or wanted.namespace
    return PodName(namespace, name) if namespace and name and not set("*?[") & set(wanted.pod) else None


def joined_troubles(answers: dict[str, TroublesAnswer]) -> TroublesAnswer:
    """The troubles of all nodes, the worst first, under the verdict on the worst node."""
    if len(answers) == 1:
        return next(iter(answers.values()))
    troubles = [trouble for answer in answers.values() for trouble in answer.troubles]
    wrong = [node for node, answer in answers.items() if answer.wrong]
    count = f"{len(answers)} nodes"
    return TroublesAnswer(
        sentence=f"Something is wrong on {len(wrong)} of {count}: {', '.join(wrong)}."
        if wrong
        else f"{count} are well.",
        node=min(answers.values(), key=lambda answer: not answer.wrong).node,
        wrong=bool(wrong),
        pods=sum(answer.pods for answer in answers.values()),
        troubles=tuple(sorted(troubles, key=lambda trouble: not trouble.wrong)),
        left_out=sum(answer.left_out for answer in answers.values()),
    )


def _one_joined(kind: type[T], answers: dict[str, T]) -> T:
    if kind is TroublesAnswer:
        return cast("T", joined_troubles(cast("dict[str, TroublesAnswer]", answers)))
    return joined(kind, answers)


def joined(kind: type[T], answers: dict[str, T]) -> T:
    """One answer with the rows of all, each with its node where a row has a place for it; of texts, those that say
    something, after their nodes."""
    found: dict[str, object] = {}
    for field in msgspec.structs.fields(kind):
        if field.default == "":
            said = {node: getattr(answer, field.name) for node, answer in answers.items()}
            found[field.name] = "; ".join(f"{node}: {text}" for node, text in said.items() if text)
        else:
            found[field.name] = tuple(
                _placed(row, node)
                for node, answer in answers.items()
                for row in cast("Sequence[object]", getattr(answer, field.name))
            )
    return kind(**found)


def _can_be_joined(kind: type[WireMessage]) -> bool:
    return kind is TroublesAnswer or all(field.default in ((), "") for field in msgspec.structs.fields(kind))


def _placed(row: object, node: str) -> object:
    if isinstance(row, msgspec.Struct) and "node" in row.__struct_fields__:
        return replace(row, node=node)
    return row


def _of_all(failed: dict[str, Failure]) -> Failure:
    """One failure for all nodes: the same right is missing for each of them, as a rule."""
    first = next(iter(failed.values()))
    if len(failed) == 1 or not isinstance(first, AgentNotRunning | NodeSilent):
        return first
    listed = "; ".join(failure.message for failure in list(failed.values())[:5])
    return NodeSilent(f"none of {len(failed)} nodes answers: {listed}")
