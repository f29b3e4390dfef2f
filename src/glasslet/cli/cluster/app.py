"""`kubectl glass`: the commands of `glasslet` for the pods of a cluster, as a kubectl plugin (`kubectl-glass`)."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from glasslet.cli.agent_client import AgentClient
from glasslet.cli.app import COMMANDS, Commands, load
from glasslet.cli.cluster.clients import ClusterClient, ClusterScope
from glasslet.cli.cluster.kubectl_proxy import kubectl_output, running_proxy
from glasslet.cli.cluster.refusals import NodeSilent
from glasslet.cli.failure import Failure
from glasslet.version import VERSION

SHARED = (
    *("ps", "describe", "trace", "why", "waits", "volumes", "report", "calls", "tasks"),
    *("break", "breaks", "unbreak", "inspect", "step", "continue", "debug"),
)
"""Commands of `glasslet` that are here as well: one word each. They ask through the client that they are given."""
OWN = {
    "nodes": "List the nodes: does each agent answer, and why is each node as it is.",
    "web": "Serve the page of a node's agent on 127.0.0.1, through the API server.",
}
CLUSTER_COMMANDS = {name: COMMANDS[name] for name in SHARED} | OWN

_CONNECTION = {
    "kubeconfig": "FILE",
    "context": "NAME",
    "cluster": "NAME",
    "user": "NAME",
    "server": "URL",
    "token": "TOKEN",
    "as": "USER",
    "as-group": "GROUP",
    "as-uid": "UID",
    "certificate-authority": "FILE",
    "client-certificate": "FILE",
    "client-key": "FILE",
    "tls-server-name": "NAME",
    "cache-dir": "FOLDER",
}
"""kubectl's own options for the way to the API server; they are passed on as they are."""
_SHOWN = ("kubeconfig", "context", "as")
"""The most used ones. The help names the others in a sentence."""
_NODE = "node"
"""`why node` is about a node, not about a pod of a namespace."""


def connection_options(*, hidden: bool) -> list[click.Option]:
    """kubectl's options, before or after the command's name."""
    options = [
        click.Option(
            [f"--{name}", *(["-s"] if name == "server" else []), f"kubectl_{name.replace('-', '_')}"],
            metavar=metavar,
            multiple=name == "as-group",
            hidden=hidden or name not in _SHOWN,
            help="As for kubectl.",
        )
        for name, metavar in _CONNECTION.items()
    ]
    insecure = click.Option(
        ["--insecure-skip-tls-verify", "kubectl_insecure_skip_tls_verify"],
        is_flag=True,
        hidden=True,
        help="As for kubectl.",
    )
    return [*options, insecure]


def scope_options() -> list[click.Option]:
    """Where to ask."""
    return [
        click.Option(
            ["--node", "scope_node"], metavar="NAME", default="", help="Ask this node. Default: the nodes of the pods."
        ),
        click.Option(["--all-nodes", "scope_all_nodes"], is_flag=True, help="Ask every node of the cluster."),
    ]


class ClusterCommands(Commands):
    """The subcommands, with options for the way to the API server."""

    table: Mapping[str, str] = CLUSTER_COMMANDS

    def load(self, name: str) -> click.Command:
        """A command of `glasslet` with the client of a cluster, or one of our own."""
        if name in OWN:
            from glasslet.cli.cluster import own_commands

            return own_commands.of(name)
        return in_cluster(load(name))

    def client(self, ctx: click.Context) -> AgentClient:
        """See the base. The proxy ends with completion."""
        typed = _together(ctx.find_root().params, ctx.params)
        options = connection_arguments(typed)
        proxy = ctx.find_root().with_resource(running_proxy(options))
        return ClusterClient(proxy, _scope(typed, options))


def in_cluster(command: click.Command) -> click.Command:
    """The same command for a cluster: more options, and a client that asks through the API server."""

    @click.pass_context
    def run(ctx: click.Context, /, **given: Any) -> None:
        assert ctx.parent is not None
        own = {name: value for name, value in given.items() if not name.startswith(("kubectl_", "scope_"))}
        with cluster_client(ctx.parent.params, given) as client:
            ctx.obj = client
            if "namespace" in own and not _names_namespace(own):
                own["namespace"] = client.scope.namespace
            assert command.callback is not None
            command.callback(**own)

    return click.Command(
        command.name,
        params=[*command.params, *scope_options(), *connection_options(hidden=True)],
        callback=run,
        help=command.help,
        context_settings=command.context_settings,
    )


@contextlib.contextmanager
def cluster_client(before: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[ClusterClient]:
    """A client for the options before and after the command's name. Nodes that did not answer are named at the end,
    and make the command fail."""
    typed = _together(before, given)
    options = connection_arguments(typed)
    with running_proxy(options) as proxy:
        client = ClusterClient(proxy, _scope(typed, options))
        try:
            yield client
        except click.exceptions.Exit:
            # The command has an exit code of its own to give.
            if client.silent:
                _silence(client).show()
            raise
    if client.silent:
        raise _silence(client)


def _silence(client: ClusterClient) -> NodeSilent:
    lines = [f"  {failure.message}" for failure in client.silent.values()]
    return NodeSilent("\n".join(["not every node answered; the others are shown", *lines]))


def connection_arguments(typed: Mapping[str, Any]) -> list[str]:
    """kubectl's options, as kubectl takes them."""
    words = []
    for name in (*_CONNECTION, "insecure-skip-tls-verify"):
        value = typed.get(f"kubectl_{name.replace('-', '_')}")
        values = value if isinstance(value, tuple | list) else [value] if value else []
        words += [f"--{name}" if one is True else f"--{name}={one}" for one in values]
    return words


def _together(before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Options before and after the command's name; the latter win where they are given."""
    return {**before, **{name: value for name, value in given.items() if value or name not in before}}


def _scope(typed: Mapping[str, Any], options: list[str]) -> ClusterScope:
    """As kubectl: the namespace of -n, else of the context; -A and --all-nodes mean all of them."""
    node, all_nodes = typed.get("scope_node") or "", bool(typed.get("scope_all_nodes"))
    namespace = typed.get("namespace") or ""
    if not namespace and not (typed.get("all_namespaces") or node or all_nodes or _names_namespace(typed)):
        shown = kubectl_output(["config", "view", "--minify", "--output=jsonpath={..namespace}", *_of_config(options)])
        namespace = shown.strip() or "default"
    return ClusterScope(namespace=namespace, node=node, all_nodes=all_nodes)


def _names_namespace(typed: Mapping[str, Any]) -> bool:
    """Whether the namespace of the context does not matter: POD has one, or the question is about a node."""
    pod = typed.get("pod") or ""
    return "/" in pod or pod == _NODE


def _of_config(options: list[str]) -> list[str]:
    """The options that choose a part of the configuration; `kubectl config view` must not print a token."""
    return [option for option in options if option.startswith(("--kubeconfig=", "--context=", "--cluster=", "--user="))]


@click.command(
    cls=ClusterCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    params=connection_options(hidden=False),
)
@click.version_option(VERSION, prog_name="kubectl glass")
def glass(**_options: object) -> None:
    """Ask the agents of a cluster: why is this pod as it is, and where did the time of its start go?

    Goes through the API server's node proxy with your kubeconfig and your rights: get on pods, and get on nodes/proxy.
    --all-nodes needs list on nodes. The namespace is that of -n, else of the context, as in kubectl. All options of
    kubectl for the connection are taken, before and after the command: --cluster, --user, --server, --token ...

    Exit codes: 1 refused, 2 wrong usage, 3 a node does not answer.
    """


def main() -> None:
    """Entry point of `kubectl-glass`."""
    try:
        glass(prog_name="kubectl glass")
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)


def complete() -> None:
    """Entry point of `kubectl_complete-glass`, which kubectl's completion calls: one word a line, then a directive."""
    from click.shell_completion import ShellComplete

    *words, incomplete = sys.argv[1:] or [""]
    completion = ShellComplete(glass, {}, "kubectl glass", "_KUBECTL_GLASS_COMPLETE")
    with contextlib.suppress(Failure, click.UsageError):
        for item in completion.get_completions(words, incomplete):
            print(f"{item.value}\t{item.help}" if item.help else item.value)
    # cobra's ShellCompDirectiveNoFileComp
    print(":4")
