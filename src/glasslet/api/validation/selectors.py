"""Label selectors."""

from __future__ import annotations

from glasslet.api.field_errors import FieldPath, forbidden, invalid, required
from glasslet.api.formats import label_value_problems, qualified_name_problems
from glasslet.api.meta import LabelSelector
from glasslet.api.validation.rules import Errors, formatted, labels


def label_selector_errors(selector: LabelSelector | None, path: FieldPath) -> Errors:
    """A selector over labels of objects."""
    if selector is None:
        return
    yield from labels(selector.match_labels, path.child("matchLabels"))
    for number, term in enumerate(selector.match_expressions):
        here = path.child("matchExpressions").at(number)
        yield from operator_errors(term.operator, term.values, here)
        yield from formatted(term.key, here.child("key"), qualified_name_problems)
        yield from value_errors(term.values, here)


def operator_errors(operator: str, values: tuple[str, ...], path: FieldPath) -> Errors:
    """`In` and `NotIn` need values, `Exists` and `DoesNotExist` take none."""
    if operator in ("In", "NotIn"):
        if not values:
            yield required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(path.child("values"), text)
    else:
        yield invalid(path.child("operator"), operator, "not a valid selector operator")


def value_errors(values: tuple[str, ...], path: FieldPath) -> Errors:
    """Values of a selector term are label values."""
    for number, value in enumerate(values):
        yield from formatted(value, path.child("values").at(number), label_value_problems)
