"""Names of certificate signers: `example.com/my-signer`."""

from __future__ import annotations

from glasslet.api.field_errors import FieldPath, invalid, required, too_long
from glasslet.api.formats import dns_label_problems, dns_subdomain_problems
from glasslet.api.validation.rules import Errors, FormatRule

_MAX_PATH = 253 + 63 + 1


def signer_name_errors(name: str, path: FieldPath) -> Errors:
    """A domain of at least two labels, one slash, and a path of subdomains."""
    if not name:
        yield required(path)
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        form = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid(path, name, form)
        return
    if len(domain) > 253:
        yield too_long(path, 253)
    yield from _first_bad_label(domain, path, dns_label_problems)
    if "." not in domain:
        yield invalid(path, domain, "should be a domain with at least two segments separated by dots")
    yield from _first_bad_label(rest, path, dns_subdomain_problems)
    if len(rest) > _MAX_PATH:
        yield too_long(path, _MAX_PATH)


def _first_bad_label(text: str, path: FieldPath, rule: FormatRule) -> Errors:
    for label in text.split("."):
        problems = rule(label)
        if problems:
            yield from (invalid(path, text, f'validating label "{label}": {problem}') for problem in problems)
            return
