"""Writes many samples in Prometheus' text format, fast: labels are made once per row, numbers as they are.

The registry of `telemetry` counts what the agent does; here are thousands of samples that live for one answer only.
"""

from __future__ import annotations

from collections.abc import Iterable


class Page:
    """An answer in the making. Families have to come in the order in which they shall stand."""

    def __init__(self) -> None:
        self._out: list[bytes] = []

    def family(self, name: str, kind: str, text: str, samples: Iterable[str]) -> None:
        """All samples of one metric, each as `sample` gives it without the name; without any it is left out."""
        lines = [f"# HELP {name} {text}\n# TYPE {name} {kind}", *samples]
        if len(lines) > 1:
            # Encoded at once: the page of a full node is megabytes, and need not be there three times.
            self._out.append(f"\n{name}".join(lines).encode())

    def encoded(self) -> bytes:
        """The whole page."""
        return b"\n".join([*self._out, b""])


def labels(**values: str) -> str:
    """`{name="value",...}` in the given order."""
    return "{" + label_pairs(**values) + "}"


def label_pairs(**values: str) -> str:
    """Labels without braces."""
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in values.items())


def sample(labels: str, value: float, timestamp: int | None = None) -> str:
    """The part after the name. `timestamp`: Unix time in milliseconds."""
    return f"{labels} {value}" if timestamp is None else f"{labels} {value} {timestamp}"


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return value
