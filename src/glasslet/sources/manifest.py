"""One manifest to one pod: decode, default, name, validate. Never raises; errors come back as a Problem."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.codec import DecodeError, convert
from glasslet.api.defaults.pod import default_pod
from glasslet.api.field_errors import FieldError
from glasslet.api.pod import Pod
from glasslet.api.static_pods import api_reference, claim_or_bundle_reference
from glasslet.config.document import Document
from glasslet.sources.static import Origin, static_pod

MAX_BYTES = 10 * 1024 * 1024
_SHOWN_ERRORS = 5
_INT64 = range(-(2**63), 2**63)


class Problem(Struct, frozen=True):
    """The reason why a manifest cannot be used. `line` counts from 1; 0 if unknown. Holds no secret values."""

    place: str
    message: str
    line: int = 0
    parts: tuple[Problem, ...] = ()
    """Every problem of the manifest on its own, where the message has only the first ones."""

    def __str__(self) -> str:
        return f"{self.place}:{self.line}: {self.message}" if self.line else f"{self.place}: {self.message}"


class ManifestReader(Struct, frozen=True):
    """The rules of one node: its name, and whether gate PreventStaticPodAPIReferences is on."""

    node_name: str
    prevent_api_references: bool = True

    def pod(self, document: Document, origin: Origin) -> Pod | Problem:
        """The pod of a document that must hold exactly one Pod."""
        kind = _kind(document.value)
        if kind != ("v1", "Pod"):
            return _problem(document, _not_a_pod(document.value, kind), "kind")
        return self._static_pod(document, document.value, origin)

    def pods(self, document: Document, origin: Origin) -> list[Pod] | Problem:
        """The pods of a document that may hold a Pod or a PodList; one bad pod spoils the list, as upstream."""
        if _kind(document.value) != ("v1", "PodList"):
            pod = self.pod(document, origin)
            return pod if isinstance(pod, Problem) else [pod]
        items = document.value.get("items") or []
        if not isinstance(items, list):
            return _problem(document, "items: want a list", "items")
        pods = []
        for number, item in enumerate(items):
            pod = self._static_pod(document, item, origin, prefix=f"items[{number}]")
            if isinstance(pod, Problem):
                return pod
            pods.append(pod)
        return pods

    def _static_pod(self, document: Document, value: Any, origin: Origin, prefix: str = "") -> Pod | Problem:
        whole = value
        if isinstance(value, dict):
            # A manifest taken from a cluster carries a status; only this agent's own observations count.
            value = {key: held for key, held in value.items() if key != "status"}
        try:
            written = convert(value, Pod)
        except DecodeError as error:
            problem = _problem(document, _under(prefix, str(error)), _join(prefix, error.path))
            return replace(problem, parts=self._parts(document, value, prefix))
        oversized = _oversized_number(value)
        if oversized is not None:
            return _problem(document, _under(prefix, f"{oversized}: the number does not fit 64 bits"), prefix)
        if not written.metadata.name:
            return _problem(
                document, _under(prefix, "metadata.name: Required value: name is needed for the pod"), prefix
            )
        # Nodes without static pods never load the rules.
        from glasslet.api.validation.pod import pod_errors

        pod = static_pod(written, default_pod(written), origin, self.node_name, whole)
        errors = pod_errors(pod)
        if errors:
            problem = _problem(
                document, _under(prefix, f"invalid pod: {_summary(errors)}"), _join(prefix, errors[0].path)
            )
            return replace(problem, parts=self._parts(document, value, prefix))
        refused = self._refused_reference(pod)
        return _problem(document, _under(prefix, refused), prefix) if refused else pod

    def _parts(self, document: Document, value: Any, prefix: str) -> tuple[Problem, ...]:
        if not isinstance(value, dict):
            return ()
        from glasslet.sources.manifest_problems import kubelet_problems

        return tuple(
            _problem(document, _under(prefix, part.text), _join(prefix, part.field))
            for part in kubelet_problems(value, self.node_name)
        )

    def _refused_reference(self, pod: Pod) -> str | None:
        if not self.prevent_api_references:
            return claim_or_bundle_reference(pod)
        what = api_reference(pod)
        return f"static pods may not reference {what}" if what else None


def shown(place: str) -> str:
    """A path as text that any output can show: bytes that are no UTF-8 become replacement characters."""
    return place.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _kind(value: Any) -> tuple[str, str]:
    if not isinstance(value, dict):
        return "", ""
    version, kind = value.get("apiVersion"), value.get("kind")
    return (version if isinstance(version, str) else ""), (kind if isinstance(kind, str) else "")


def _not_a_pod(value: Any, kind: tuple[str, str]) -> str:
    if not isinstance(value, dict):
        return "this is not a Kubernetes object: want a mapping with apiVersion v1 and kind Pod"
    if not all(kind):
        return f"{'kind' if not kind[1] else 'apiVersion'} is missing: want apiVersion v1 and kind Pod"
    return f'kind "{kind[1]}" of apiVersion "{kind[0]}" cannot run here: want apiVersion v1 and kind Pod'


def _problem(document: Document, message: str, path: str) -> Problem:
    return Problem(shown(document.origin), message, document.line_of(path))


def _summary(errors: list[FieldError]) -> str:
    texts = list(dict.fromkeys(map(str, errors)))
    if len(texts) > _SHOWN_ERRORS:
        texts = [*texts[:_SHOWN_ERRORS], f"and {len(texts) - _SHOWN_ERRORS} more"]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _oversized_number(value: Any) -> int | None:
    """The first whole number beyond the API's 64 bits."""
    if isinstance(value, int):
        return None if value in _INT64 else value
    inside: Iterable[Any] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for one in inside if (found := _oversized_number(one)) is not None), None)


def _join(prefix: str, path: str) -> str:
    return f"{prefix}.{path}" if prefix and path else prefix or path


def _under(prefix: str, message: str) -> str:
    return f"{prefix}: {message}" if prefix else message
