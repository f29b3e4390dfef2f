#!/usr/bin/env python3
"""Prints a CycloneDX 1.5 list of the Python packages in a folder: name, version, licence, and what each needs.

Usage: scripts/sbom.py SITE_PACKAGES    (the standard library only; the time is SOURCE_DATE_EPOCH's, if set)
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from typing import Any


def document(found: Iterable[Distribution]) -> dict[str, Any]:
    """The list of these packages; glasslet is what it is about."""
    packages = {canonical(one.metadata["Name"]): one for one in found}
    components = {name: _component(name, one) for name, one in sorted(packages.items())}
    about = components.pop("glasslet", None)
    made = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": f"{made:%Y-%m-%dT%H:%M:%SZ}", **({"component": about} if about else {})},
        "components": list(components.values()),
        "dependencies": [
            {"ref": _ref(name, one), "dependsOn": sorted(_needs(one, packages))}
            for name, one in sorted(packages.items())
        ],
    }


def canonical(name: str) -> str:
    """The name as indexes write it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _component(name: str, package: Distribution) -> dict[str, Any]:
    fields = package.metadata.json
    licence = str(fields.get("license_expression") or fields.get("license") or "")
    kind = "application" if name == "glasslet" else "library"
    made = {"type": kind, "bom-ref": _ref(name, package), "name": name, "version": package.version}
    made["purl"] = _ref(name, package)
    if licence and "\n" not in licence:
        return {**made, "licenses": [{"license": {"name": licence}}]}
    return made


def _ref(name: str, package: Distribution) -> str:
    return f"pkg:pypi/{name}@{package.version}"


def _needs(package: Distribution, packages: dict[str, Distribution]) -> set[str]:
    names = {
        canonical(re.split(r"[^\w.-]", need, maxsplit=1)[0])
        for need in package.requires or ()
        if "extra ==" not in need
    }
    return {_ref(name, packages[name]) for name in names if name in packages}


def main() -> int:
    """Prints the list."""
    if len(sys.argv) != 2:
        print("usage: scripts/sbom.py SITE_PACKAGES", file=sys.stderr)
        return 2
    print(json.dumps(document(distributions(path=[sys.argv[1]])), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
