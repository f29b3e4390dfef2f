"""Rules about logging, log queries and tracing."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from glasslet.config.problem import Step
from glasslet.config.validation.finding import Finding, ValidationInput, invalid

_LARGEST = 2**31 - 1


def _logging(field: str, kind: str, reason: str) -> Finding:
    return Finding(field, f"{field}: {kind}{reason}", step=Step.LOGGING)


def check_logging(subject: ValidationInput) -> Iterator[Finding]:
    """The logging section; checked on its own, before the rest."""
    logging = subject.configuration.logging
    if logging.format not in ("text", "json"):
        yield _logging("logging.format", f'Invalid value: "{logging.format}": ', "Unsupported log format")
    elif logging.format == "json" and not subject.gates.enabled("LoggingBetaOptions"):
        reason = "Log format json is disabled, see LoggingBetaOptions feature"
        yield _logging("logging.format", "Forbidden: ", reason)
    if logging.verbosity > _LARGEST:
        yield _logging("logging.verbosity", f"Invalid value: {logging.verbosity}: ", f"Must be <= {_LARGEST}")
    if logging.vmodule and logging.format != "text":
        yield _logging("logging.vmodule", "Forbidden: ", "Only supported for text log format")
    for index, item in enumerate(logging.vmodule):
        field = f"logging.vmodule[{index}]"
        if not item.file_pattern:
            yield _logging(field, "Required value: ", "File pattern must not be empty")
        if "=" in item.file_pattern or "," in item.file_pattern:
            reason = "File pattern must not contain equal sign or comma"
            yield _logging(field, f'Invalid value: "{item.file_pattern}": ', reason)
        if item.verbosity > _LARGEST:
            yield _logging(field, f"Invalid value: {item.verbosity}: ", f"Must be <= {_LARGEST}")
    if subject.gates.enabled("LoggingAlphaOptions"):
        return
    for name, routing in (("text", logging.options.text), ("json", logging.options.json)):
        reason = "Feature LoggingAlphaOptions is disabled"
        if routing.split_stream:
            yield _logging(f"logging.options.{name}.splitStream", "Forbidden: ", reason)
        if routing.info_buffer_size.nano_value():
            yield _logging(f"logging.options.{name}.infoBufferSize", "Forbidden: ", reason)


def check_log_query(subject: ValidationInput) -> Iterator[Finding]:
    """enableSystemLogQuery needs its gate and its handler."""
    configuration = subject.configuration
    if not configuration.enable_system_log_query:
        return
    if not subject.gates.enabled("NodeLogQuery"):
        text = "NodeLogQuery feature gate is required for enableSystemLogHandler"
        yield invalid("enableSystemLogQuery", text, "false")
    if not configuration.enable_system_log_handler:
        yield invalid("enableSystemLogQuery", "enableSystemLogQuery requires enableSystemLogHandler", "false")


def check_log_directory(subject: ValidationInput) -> Iterator[Finding]:
    """podLogsDir: absolute, normalised, ASCII."""
    import os

    path = subject.configuration.pod_logs_dir
    if not path:
        yield invalid("podLogsDir", "podLogsDir is empty", "an absolute path")
        return
    if not path.startswith("/"):
        yield invalid("podLogsDir", f'pod logs path "{path}" must be absolute', "an absolute path")
    if os.path.normpath(path).replace("//", "/") != path:
        yield invalid("podLogsDir", f'pod logs path "{path}" must be normalized', "without trailing slash, . and ..")
    if not path.isascii():
        yield invalid("podLogsDir", f'pod logs path "{path}" must contain ASCII characters only', "ASCII characters")


def check_tracing(subject: ValidationInput) -> Iterator[Finding]:
    """Collector and sampling rate."""
    tracing = subject.configuration.tracing
    if tracing is None:
        return
    rate = tracing.sampling_rate_per_million
    if rate is not None and not 0 <= rate <= 1_000_000:
        text = f"tracing.samplingRatePerMillion: Invalid value: {rate}: must be from 0 to one million"
        yield Finding("tracing.samplingRatePerMillion", text, "0 to 1000000")
    endpoint = tracing.endpoint
    if endpoint is None:
        return
    try:
        scheme = urlsplit(endpoint if "//" in endpoint else f"dns://{endpoint}").scheme
    except ValueError:
        scheme = "?"
    if scheme not in ("dns", "unix", "unix-abstract"):
        text = f'tracing.endpoint: Invalid value: "{endpoint}": unsupported scheme {scheme}, want none, dns or unix'
        yield Finding("tracing.endpoint", text, "host:port, dns, unix, unix-abstract")
