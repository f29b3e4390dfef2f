"""Durations, counts, sizes and similar names in words, for answers and tables alike."""

from __future__ import annotations

from collections.abc import Iterable


def duration(seconds: float) -> str:
    """`280 ms`, `1.5 s`, `41 s`, `4 min 12 s`, `2 h 5 min`, `3 d 4 h`; negative counts as 0."""
    if seconds < 0.9995:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    for unit, size, smaller, part in (("min", 60, "s", 1), ("h", 3600, "min", 60), ("d", 86400, "h", 3600)):
        if whole < size * {"min": 60, "h": 24}.get(unit, 10**9):
            rest = whole % size // part
            return f"{whole // size} {unit} {rest} {smaller}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def milliseconds(value: float) -> str:
    """`0.4 ms`, `128 ms`, `2.31 s`, beyond ten seconds as `duration`."""
    if value < 9.95:
        return f"{value:.1f} ms"
    if value < 999.5:
        return f"{value:.0f} ms"
    if value < 9995:
        return f"{value / 1000:.2f} s"
    return duration(value / 1000)


def size_words(count: float) -> str:
    """`312 bytes`, `48 KiB`, `3.1 MiB`, `128 MiB`, `1.2 GiB`; negative counts as 0."""
    if count < 1024:
        return f"{max(0.0, count):.0f} bytes"
    for unit, size in (("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)):
        if count < size * 1023.5 or unit == "GiB":
            break
    amount = count / size
    return f"{amount:.1f} {unit}".replace(".0 ", " ") if amount < 9.95 else f"{amount:.0f} {unit}"


def times(count: int) -> str:
    """`0 times`, `once`, `2 times`."""
    return "once" if count == 1 else f"{count} times"


def nearest(typed: str, names: Iterable[str]) -> tuple[str, ...]:
    """Up to three of `names` (`namespace/name`) that look like `typed`, with or without its namespace."""
    import difflib

    known = {name.rpartition("/")[2]: name for name in names} | {name: name for name in names}
    near = difflib.get_close_matches(typed, known, n=3, cutoff=0.5)
    return tuple(dict.fromkeys(known[name] for name in near))
