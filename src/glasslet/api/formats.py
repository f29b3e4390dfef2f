"""The text formats of Kubernetes names and keys.

Each function returns what is wrong with a text, in the words the API server uses; an empty list means it is fine.
"""

from __future__ import annotations

import re

MAX_INT32 = 2**31 - 1
_INT64 = range(-(2**63), 2**63)
_INT64_DIGITS = 19
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_ENV_NAME = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER = "[-A-Za-z0-9]+"

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-',"
    " and must start and end with an alphanumeric character"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character"
)
_QUALIFIED_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character"
)
_ENV_NAME_TEXT = (
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.',"
    " and must not start with a digit"
)

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch
_is_env_name = re.compile(_ENV_NAME).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_header = re.compile(_HEADER).fullmatch


def int64(text: str) -> int | None:
    """The number in a text, as Go's ParseInt reads 64 bits; None for any other text, of any length."""
    sign, digits = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0") or "0"
    if len(digits) > _INT64_DIGITS:
        return None
    number = -int(digits) if sign == "-" else int(digits)
    return number if number in _INT64 else None


def dns_label_problems(text: str) -> list[str]:
    """RFC 1123 label: container names, volume names, host names."""
    problems = _longer_than(63, text)
    if not _is_label(text):
        problems.append(
            "must not contain dots" if _is_subdomain(text) else _pattern(_LABEL_TEXT, _LABEL, "my-name", "123-abc")
        )
    return problems


def dns_subdomain_problems(text: str) -> list[str]:
    """RFC 1123 subdomain: names of most objects."""
    problems = _longer_than(253, text)
    if not _is_subdomain(text):
        problems.append(_pattern(_SUBDOMAIN_TEXT, _SUBDOMAIN, "example.com"))
    return problems


def name_prefix_problems(text: str) -> list[str]:
    """A subdomain that something will be appended to: one trailing dash is fine."""
    return dns_subdomain_problems(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def qualified_name_problems(text: str) -> list[str]:
    """Label keys, annotation keys, resource names: `name` or `prefix.example.com/name`."""
    shape = _pattern(_QUALIFIED_TEXT, _QUALIFIED, "MyName", "my.name", "123-abc")
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [
            f"a qualified name {shape} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        ]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in dns_subdomain_problems(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    else:
        problems += [f"name part {problem}" for problem in _longer_than(63, name)]
    if not _is_qualified(name):
        problems.append(f"name part {shape}")
    return problems


def label_value_problems(text: str) -> list[str]:
    """The value of a label."""
    problems = _longer_than(63, text)
    if not _is_label_value(text):
        problems.append(_pattern(_LABEL_VALUE_TEXT, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return problems


def env_name_problems(text: str) -> list[str]:
    """The name of an environment variable, and the prefix of `envFrom`."""
    problems = []
    if not _is_env_name(text):
        problems.append(_pattern(_ENV_NAME_TEXT, _ENV_NAME, "my.env-name", "MY_ENV.NAME", "MyEnvName1"))
    return problems + _dots(text)


def printable_env_name_problems(text: str) -> list[str]:
    """A key in an environment file: any printable ASCII but '='."""
    problems = [] if text else ["environment variable name must be non-empty"]
    if any(not " " <= character <= "~" or character == "=" for character in text):
        problems.append(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
    return problems


def config_key_problems(text: str) -> list[str]:
    """A key in a ConfigMap or Secret."""
    problems = _longer_than(253, text)
    if not _is_config_key(text):
        shape = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        problems.append(_pattern(shape, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    return problems + _dots(text)


def http_header_problems(text: str) -> list[str]:
    """The name of an HTTP header."""
    if _is_header(text):
        return []
    shape = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [_pattern(shape, _HEADER, "X-Header-Name")]


def port_name_problems(text: str) -> list[str]:
    """IANA service name: names of container ports."""
    problems = _longer_than(15, text)
    if not re.fullmatch("[-a-z0-9]+", text):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def port_number_problems(number: int) -> list[str]:
    """1 to 65535."""
    return in_range_problems(number, 1, 65535)


def id_problems(number: int) -> list[str]:
    """User and group ids."""
    return in_range_problems(number, 0, MAX_INT32)


def in_range_problems(number: int, low: int, high: int) -> list[str]:
    """low <= number <= high."""
    return [] if low <= number <= high else [f"must be between {low} and {high}, inclusive"]


def ip_problems(text: str) -> list[str]:
    """An IPv4 or IPv6 address; leading zeros in IPv4 parts are taken as decimal, as they always were."""
    import ipaddress

    plain = ".".join(part.lstrip("0") or "0" for part in text.split(".")) if re.fullmatch(r"[0-9.]+", text) else text
    try:
        if "%" in plain or any(not part for part in text.split(".")):
            raise ValueError
        ipaddress.ip_address(plain)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return []


def _longer_than(limit: int, text: str) -> list[str]:
    return [f"must be no more than {limit} characters"] if len(text.encode()) > limit else []


def _dots(text: str) -> list[str]:
    if text in (".", ".."):
        return [f"must not be '{text}'"]
    return ["must not start with '..'"] if text.startswith("..") else []


def _pattern(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"
