"""Feature gates: which are on, and what may be set."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from glasslet.config.gate_table import GATES, LATER, Stage


class FeatureGates(Struct, frozen=True):
    """The gates that are on. `overrides` are the valid settings as given; all others have their default of 1.34."""

    overrides: Mapping[str, bool] = field(default_factory=dict)

    def enabled(self, name: str) -> bool:
        """Whether a gate is on. Raises KeyError for a name that 1.34 does not know: a mistake in our own code."""
        spec = GATES[name]
        if name in self.overrides:
            return self.overrides[name]
        if spec.stage is Stage.ALPHA and name not in ("AllAlpha", "AllBeta"):
            return self.overrides.get("AllAlpha", spec.default)
        if spec.stage is Stage.BETA and name not in ("AllAlpha", "AllBeta"):
            return self.overrides.get("AllBeta", spec.default)
        return spec.default

    def all(self) -> dict[str, bool]:
        """Every gate, sorted by name."""
        return {name: self.enabled(name) for name in sorted(GATES)}


class GateFinding(Struct, frozen=True):
    """Something about one setting; an error keeps the kubelet from starting."""

    name: str
    message: str
    error: bool


def apply_gates(settings: Mapping[str, bool]) -> tuple[FeatureGates, list[GateFinding]]:
    """The gates after `settings` (flag entries merged over those of the file), and what is to say about them."""
    findings = []
    good = {}
    for name, value in settings.items():
        finding = _judge(name, value)
        if finding is not None:
            findings.append(finding)
        if finding is None or not finding.error:
            good[name] = value
    return FeatureGates(good), findings


def _judge(name: str, value: bool) -> GateFinding | None:
    spec = GATES.get(name)
    if spec is None:
        return GateFinding(name, f"unrecognized feature gate: {name[:200]}{_hint(name)}", error=True)
    if spec.locked and value != spec.default:
        locked = str(spec.default).lower()
        text = f"cannot set feature gate {name} to {str(value).lower()}, feature is locked to {locked}"
        return GateFinding(name, text, error=True)
    if spec.stage in (Stage.GA, Stage.DEPRECATED):
        kind = "GA" if spec.stage is Stage.GA else "deprecated"
        text = f"Setting {kind} feature gate {name}={str(value).lower()}. It will be removed in a future release."
        return GateFinding(name, text, error=False)
    return None


def _hint(name: str) -> str:
    if name in LATER:
        return f" (it is known from {LATER[name]} on)"
    near = [known for known in GATES if known.lower() == name.lower()]
    if not near:
        import difflib

        near = difflib.get_close_matches(name[:100], GATES, n=1, cutoff=0.75)
    return f", did you mean {near[0]}?" if near else ""
