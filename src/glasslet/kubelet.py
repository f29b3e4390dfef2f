"""The `kubelet` command: flags in, exit code out. The only place that turns problems and errors into an exit.

`kubelet check [--effective] [-o json|text] -- FLAGS...` lists the problems of a command line;
`kubelet check --replace [-- FLAGS...]` lists what would differ from the Go kubelet that runs here, or has these flags;
`kubelet check FILE...` lists the problems of pod manifests. `glasslet check` calls it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from glasslet.version import KUBELET_VERSION, KUBERNETES_VERSION, VERSION

if TYPE_CHECKING:
    from glasslet.calls.start import StartWatch
    from glasslet.config.flags.parsing import ParsedFlags
    from glasslet.config.loading import Loaded
    from glasslet.config.options import Options
    from glasslet.config.problem import ConfigProblem


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command with `argv` (without the program's name; None takes the process's). The exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if arguments == ["--version"]:
            return _say(f"Kubernetes {KUBELET_VERSION}")
        if arguments[:1] == ["check"]:
            return _check(arguments[1:])
        return _start(arguments)
    except BrokenPipeError:
        # The reader of the output has closed it.
        return 1
    except KeyboardInterrupt:
        return 130


def _start(arguments: list[str]) -> int:
    from glasslet.config.flags import parsing as flags

    parsed = flags.parse(arguments)
    if not parsed.problems and (code := _answer(parsed)) is not None:
        return code
    from glasslet.calls.start import StartWatch

    watch = StartWatch()
    with watch.part("modules of the configuration"):
        from glasslet.config.check import machine_problems
        from glasslet.config.loading import in_order, load

    loaded: Loaded = watch.wrapped(load)(arguments)
    for notice in loaded.warnings:
        _complain(f"{notice.origin}: {notice.message}" if notice.field[:2] != "--" else notice.message)
    problems = loaded.problems or tuple(in_order(watch.wrapped(machine_problems)(loaded)))
    if problems:
        return _give_up(problems, loaded.options)
    return _run(loaded, arguments, watch)


def _answer(parsed: ParsedFlags) -> int | None:
    """Prints the answer to --help or --version; None if the kubelet is to start."""
    if parsed.values.get("help"):
        from glasslet.config.flags.help import help_text

        return _say(help_text())
    version = parsed.values.get("version", "false")
    if version == "raw":
        return _say(_raw_version())
    return _say(f"Kubernetes {KUBELET_VERSION}") if version == "true" else None


def _run(loaded: Loaded, arguments: list[str], watch: StartWatch) -> int:
    try:
        from glasslet.host.process import set_own_title
        from glasslet.imports import load_agent
        from glasslet.server.transport.serving_certificate import begin_serving_pair

        set_own_title(arguments)
        serving_pair = watch.wrapped(begin_serving_pair)(loaded)
        run = watch.wrapped(load_agent)()
        watch.watch(("glasslet.daemon", "glasslet.assembly."))
        return watch.wrapped(run)(loaded, serving_pair, watch)  # type: ignore[no-any-return]
    except Exception as error:
        # The last resort: a failed start says why in one line, with the trace below it.
        import traceback

        from glasslet.config.failure import failure_line
        from glasslet.host.files.start_note import StartNotes
        from glasslet.host.start_failures import start_failure

        cause = start_failure(error)
        StartNotes(loaded.options.root_dir, node=loaded.options.hostname_override).refused([(cause, "")])
        _complain(_stamped(failure_line(f"failed to run Kubelet: {cause}")))
        traceback.print_exception(error)
        return 1


def _give_up(problems: Sequence[ConfigProblem], options: Options) -> int:
    from glasslet.config.failure import failure_line, failure_text, first_line, problem_lines
    from glasslet.host.files.start_note import StartNotes

    StartNotes(options.root_dir, node=options.hostname_override).refused(
        [(first_line(one.message), str(one.origin)) for one in problems]
    )
    if len(problems) > 1:
        _complain("\n".join([f"{len(problems)} problems:", *problem_lines(problems)]))
    _complain(_stamped(failure_line(failure_text(problems, options))))
    return 1


def _check(arguments: list[str]) -> int:
    from glasslet.config.check import as_text, check

    effective, replace, output = False, False, "text"
    rest = iter(arguments)
    flags: list[str] = []
    files: list[str] = []
    for argument in rest:
        if argument == "--":
            flags = list(rest)
        elif argument == "--effective":
            effective = True
        elif argument == "--replace":
            replace = True
        elif argument == "--json":
            output = "json"
        elif argument in ("-o", "--output"):
            output = next(rest, "")
        elif argument.startswith(("-o", "--output=")):
            output = argument.removeprefix("--output").removeprefix("-o").removeprefix("=")
        elif argument == "-" or not argument.startswith("-"):
            files.append(argument)
        else:
            # Without the separator everything from the first unknown word on is the command line to check.
            flags = [argument, *rest]
    if output not in ("json", "text"):
        _complain(f"kubelet check: -o {output[:50]}: want json or text")
        return 2
    if replace:
        return _check_replacement(flags, output)
    if files:
        return _check_manifests(files, flags, output)
    report = check(flags)
    if output == "json":
        import json

        _say(json.dumps(report.as_plain(effective=effective), ensure_ascii=False, indent=1))
    else:
        _say(as_text(report, effective=effective))
    return 1 if report.problems else 0


def _check_replacement(flags: list[str], output: str) -> int:
    from glasslet.config.check import machine_problems
    from glasslet.config.loading import in_order, load
    from glasslet.config.replacement.differences import Weight, as_text, differences
    from glasslet.config.replacement.facts import read_set_up, running_kubelet

    running = running_kubelet()
    loaded = load(flags or (running.flags if running is not None else ()))
    set_up = read_set_up(loaded.options.root_dir, cert_dir=loaded.options.cert_dir)
    found = differences(set_up, loaded, tuple(in_order([*loaded.problems, *machine_problems(loaded)])))
    if output == "json":
        import json

        import msgspec

        _say(json.dumps({"differences": [msgspec.structs.asdict(one) for one in found]}, ensure_ascii=False, indent=1))
    else:
        _say(as_text(found))
    return 1 if any(one.weight is Weight.STOP for one in found) else 0


def _check_manifests(files: list[str], flags: list[str], output: str) -> int:
    import json
    import platform

    from glasslet.sources.manifest_check import check_manifests

    if flags:
        _complain(f"kubelet check: {flags[0][:50]}: want manifest files or flags, not both")
        return 2
    report = check_manifests(files, platform.node().lower())
    _say(json.dumps(report.as_plain(), ensure_ascii=False, indent=1) if output == "json" else report.as_text())
    return 1 if report.problems else 0


def _raw_version() -> str:
    import platform

    major, minor = KUBERNETES_VERSION[1:].split(".")[:2]
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return (
        f'version.Info{{Major:"{major}", Minor:"{minor}", GitVersion:"{KUBELET_VERSION}", '
        f'GitCommit:"glasslet-{VERSION}", GitTreeState:"", BuildDate:"", PythonVersion:"{platform.python_version()}", '
        f'Compiler:"{platform.python_implementation().lower()}", Platform:"{sys.platform}/{machine}"}}'
    )


def _stamped(line: str) -> str:
    """The line with klog's header, which log readers expect."""
    import os
    import time

    now = time.time()
    stamp = time.strftime("%m%d %H:%M:%S", time.localtime(now))
    return f"E{stamp}.{int(now % 1 * 10**6):06d} {os.getpid():7d} kubelet.py] {line}"


def _complain(text: str) -> None:
    sys.stderr.write(text + "\n")


def _say(text: str) -> int:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
