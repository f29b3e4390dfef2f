"""What files would change here: `glasslet up --dry-run` and `glasslet diff`. Nothing is written."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from glasslet.box.documents import DocumentFinding, Documents, Plain, all_of, objects_of
from glasslet.box.plan import BoxMemory, BoxPlace, plan
from glasslet.box.store import BoxStore
from glasslet.config.files import MAX_BYTES

_HIDDEN = "(hidden)"


def preview(state: Path, files: Sequence[str]) -> int:
    """Prints the difference between what runs and what these files want. 1 if a document is broken, else 0."""
    store = BoxStore(state)
    read = all_of([_documents(file) for file in files])
    place = BoxPlace(claims=state / "claims", services="10.217.0.0/24")
    memory = store.memory() if (store.box / "memory.json").exists() else BoxMemory()
    wanted = plan(read.objects, memory, {}, datetime.now(UTC), place)
    before = store.pods() if store.manifests.is_dir() else {}
    lines = []
    for pod in wanted.pods:
        name = f"{pod.namespace}/{pod.slot.name}"
        if pod.body is not None:
            lines += list(_difference(f"Pod {name}", before.get(pod.key), pod.body))
    for path, body in sorted(wanted.objects.items()):
        kept = store.objects / path
        known = msgspec.json.decode(kept.read_bytes()) if kept.is_file() else None
        lines += list(_difference(path.removeprefix("api/v1/"), _shown(path, known), _shown(path, body)))
    findings = [*read.findings, *wanted.findings]
    sys.stdout.write("".join(f"{line}\n" for line in lines) or "nothing changes\n")
    for finding in findings:
        sys.stderr.write(f"{'broken: ' if finding.broken else ''}{finding}\n")
    return 1 if any(finding.broken for finding in findings) else 0


def _documents(file: str) -> Documents:
    try:
        with Path(file).open("rb") as opened:
            return objects_of(opened.read(MAX_BYTES + 1), file)
    except OSError as error:
        return Documents(findings=(DocumentFinding(file, error.strerror or str(error), broken=True),))


def _difference(name: str, before: Plain | None, after: Plain | None) -> Iterator[str]:
    if before == after:
        return
    yield f"{'new' if before is None else 'changed'}: {name}"
    if before is not None:
        old, new = _yaml(before), _yaml(after)
        yield from (
            f"  {line}" for line in difflib.unified_diff(old, new, lineterm="", n=1) if line[:3] not in ("---", "+++")
        )


def _yaml(body: Plain | None) -> list[str]:
    import yaml

    return str(yaml.safe_dump(body, sort_keys=True)).splitlines() if body is not None else []


def _shown(path: str, body: Plain | None) -> Plain | None:
    """A Secret without its values: a digest tells whether one changed."""
    if body is None or "/secrets/" not in path:
        return body
    from glasslet.box.shapes import digest

    data = body.get("data")
    hidden = {key: f"{_HIDDEN} {digest(value)}" for key, value in data.items()} if isinstance(data, dict) else data
    return {**body, "data": hidden}
