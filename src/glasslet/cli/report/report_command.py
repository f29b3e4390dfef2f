"""`glasslet report`: writes all that is known of one pod into one file."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

import click
import msgspec

from glasslet.answers.wire import to_plain
from glasslet.cli.agent_client import AgentPlace
from glasslet.cli.failure import Failure
from glasslet.cli.options import namespace_option, recorded_pod_argument
from glasslet.cli.output import write
from glasslet.cli.target import in_namespace


@click.command("report")
@recorded_pod_argument
@namespace_option
@click.option("-o", "--output", metavar="FILE", default="", help="The file; - for standard output. Default: a new one.")
@click.option("--with-output", is_flag=True, help="Keep what containers wrote: last words, messages, probes' output.")
@click.pass_obj
def command(place: AgentPlace, pod: str, namespace: str, output: str, with_output: bool) -> None:
    """Write all that is known of one pod into one file to hand on: why, description, start, waits, events, versions
    and configuration. It holds no secrets: credentials are replaced by their length, and so is what containers wrote.

    POD is a name, namespace/name, or the beginning of one. Removed pods are found in the record.
    """
    from glasslet.cli.report.gathering import Report, gathered
    from glasslet.cli.report.redaction import redacted
    from glasslet.cli.report.text import report_text

    report = gathered(place, in_namespace(pod, namespace))
    text = report_text(msgspec.convert(redacted(to_plain(report), output=with_output), Report, strict=False))
    if output == "-":
        sys.stdout.write(text)
        return
    name = output or f"glasslet-report-{report.pod.replace('/', '-')}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.md"
    try:
        # For its owner: who hands it on decides that.
        with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise Failure(f"-o {name}: {error.strerror or error}") from error
    write(f"{name} ({len(text) // 1024 + 1} KiB): read it before you hand it on")
