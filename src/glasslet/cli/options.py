"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

from glasslet.cli.completion import container_names, namespaces, pod_names, recorded_pod_names
from glasslet.cli.standalone.state_dir import DEFAULT

state_option = click.option(
    "--state",
    metavar="FOLDER",
    default=DEFAULT,
    show_default=True,
    type=click.Path(path_type=Path),
    help="State folder of `up`.",
)
namespace_option = click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    default="",
    shell_complete=namespaces,
    help="Only pods of this namespace. Default: all.",
)
container_option = click.option(
    "-c",
    "--container",
    metavar="NAME",
    default="",
    shell_complete=container_names,
    help="The container. Default: the pod's default, else its first.",
)
pod_argument = click.argument("pod", shell_complete=pod_names)
recorded_pod_argument = click.argument("pod", shell_complete=recorded_pod_names)
optional_pod_argument = click.argument("pod", required=False, default="", shell_complete=pod_names)
optional_recorded_pod_argument = click.argument("pod", required=False, default="", shell_complete=recorded_pod_names)
why_argument = click.argument(
    "pod", metavar="[POD|node]", required=False, default="", shell_complete=recorded_pod_names
)
