"""Takes secrets out of a report before anything of it is written: pure, over plain data.

    always      values that look like a credential, wherever they stand: tokens, keys, passwords in URLs and settings;
                headers of staticPodURL; labels whose name says that they hold a secret
    by default  what containers wrote: last words of logs, termination messages, output of probes and hooks

The agent's answers hold no environment variables, annotations, Secrets or ConfigMaps to begin with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_WORDS = r"(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|credential|private[_-]?key|access[_-]?key)"
_SECRET_NAME = re.compile(_WORDS, re.IGNORECASE)
_NAME = rf"[\w.-]*{_WORDS}[\w.-]*"
_PATTERNS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"(?<=://)[^/\s@]+(?=@)"),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]*\.?[\w-]*"),
    re.compile(r"(?<=authorization: )\S+(?: \S+)?", re.IGNORECASE),
    re.compile(r"(?<=\bbearer )[\w.~+/-]{8,}=*", re.IGNORECASE),
    re.compile(r"(?<=\bbasic )[\w+/]{8,}=*", re.IGNORECASE),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"\bgh[pousr]_\w{20,}\b"),
)
_SETTING = re.compile(
    rf"(?P<name>(?<![\w.-]){_NAME}[\"']?\s*=\s*|[\"']{_NAME}[\"']\s*:\s*)(?P<value>\"[^\"]*\"|'[^']*'|\S+)",
    re.IGNORECASE,
)
_LONG_WORD = re.compile(r"(?<![\w+/=.-])[\w+-]{40,}={0,2}(?![\w+/])")
_HEADERS = "staticPodURLHeader"
_BY_CONTAINERS = frozenset(("last words", "message", "last message", "output", "last answers"))
"""Labels of evidence that quotes a container."""
_QUOTING_EVENTS = ("Unhealthy", "ProbeWarning", "FailedPostStartHook", "FailedPreStopHook")


def redacted(report: Mapping[str, object], *, output: bool) -> dict[str, object]:
    """The report without secrets; with `output`, what containers wrote stays (credentials in it do not)."""
    made = {key: _walk(value, (key,), output) for key, value in report.items()}
    if not output:
        quoted = sorted(_quotations(report), key=len, reverse=True)
        made = {key: _without(value, quoted) for key, value in made.items()}
    return made


def scrubbed(text: str) -> str:
    """The text, with its length in place of each value that looks like a credential."""
    for pattern in _PATTERNS:
        text = pattern.sub(lambda found: _mark(found[0]), text)
    text = _SETTING.sub(lambda found: found["name"] + _mark(found["value"]), text)
    return _LONG_WORD.sub(lambda found: _mark(found[0]) if _is_random(found[0]) else found[0], text)


def _walk(value: object, path: tuple[str, ...], output: bool) -> object:
    if isinstance(value, str):
        return _mark(value) if value and _is_secret_place(path) else scrubbed(value)
    if isinstance(value, Mapping):
        if not output and (shown := _evidence_or_event(value)) is not None:
            return shown
        return {str(key): _walk(held, (*path, str(key)), output) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(one, path, output) for one in value]
    return value


def _is_secret_place(path: tuple[str, ...]) -> bool:
    return any(part.startswith(_HEADERS) for part in path) or (
        len(path) > 1 and path[-2] == "labels" and bool(_SECRET_NAME.search(path[-1]))
    )


def _evidence_or_event(value: Mapping[str, object]) -> dict[str, object] | None:
    """A piece of evidence or an Event that quotes a container, without the quotation."""
    if value.keys() == {"label", "text"} and value["label"] in _BY_CONTAINERS:
        return {"label": value["label"], "text": _written(str(value["text"]))}
    message = value.get("message")
    if value.get("reason") in _QUOTING_EVENTS and isinstance(message, str):
        what, colon, said = message.partition(": ")
        return {**value, "message": f"{scrubbed(what)}{colon}{_written(said) if said else ''}"}
    return None


def _quotations(value: object) -> set[str]:
    """What containers wrote, as the answers mark it: it may stand in sentences, too."""
    found: set[str] = set()
    if isinstance(value, Mapping):
        text = ""
        if value.keys() == {"label", "text"} and value["label"] in _BY_CONTAINERS:
            text = str(value["text"])
        elif value.get("state") == "terminated" and isinstance(value.get("message"), str):
            text = str(value["message"])
        # Last words of several containers stand in one text, each after its name.
        found |= {part for part in (text.strip(), *(line.strip() for line in text.splitlines())) if len(part) > 3}
        for held in value.values():
            found |= _quotations(held)
    elif isinstance(value, list | tuple):
        for one in value:
            found |= _quotations(one)
    return found


def _without(value: object, quoted: list[str]) -> object:
    if isinstance(value, str):
        for text in quoted:
            value = value.replace(text, _written(text)).replace(scrubbed(text), _written(text))
        return value
    if isinstance(value, dict):
        return {key: _without(held, quoted) for key, held in value.items()}
    if isinstance(value, list):
        return [_without(one, quoted) for one in value]
    return value


def _written(text: str) -> str:
    return f"<{len(text)} characters that the container wrote>" if text else ""


def _mark(value: str) -> str:
    return f"<redacted, {len(value)} characters>"


def _is_random(word: str) -> bool:
    """Whether a long word looks like a key, not like a name, an identifier or a digest."""
    return bool(re.search(r"[a-z]", word) and re.search(r"[A-Z]", word) and re.search(r"\d", word))
