"""Files that nobody vouches for become plain data with lines, or one clear error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from glasslet.config.document import Document, DocumentError
from glasslet.config.documents import load_documents, load_file


def load(text: str | bytes) -> list[Document]:
    data = text.encode() if isinstance(text, str) else text
    return load_documents(data, origin="f.yaml")


def error_of(text: str | bytes) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        load(text)
    return caught.value


def test_documents_of_one_file_come_in_order_and_empty_ones_are_left_out() -> None:
    assert [d.value for d in load("a: 1\n---\n---\n# nothing\n---\nb: [x]\n")] == [{"a": 1}, {"b": ["x"]}]


def test_an_empty_file_has_no_documents() -> None:
    assert load("") == []
    assert load("# only a comment\n") == []


def test_lines_of_values_are_known_across_documents() -> None:
    first, second = load("a:\n  b:\n  - x\n  - y: 1\n---\nc: 2\n")
    assert first.line_of("a.b[1].y") == 4
    assert first.line_of(("a", "b", 0)) == 3
    assert first.line_of("$.a.nothing") == 1
    assert second.line_of("c") == 6


def test_lines_of_json_are_known_even_with_tabs() -> None:
    (document,) = load('{\n\t"a": {\n\t\t"b": 1\n\t}\n}')
    assert document.value == {"a": {"b": 1}}
    assert document.line_of("a.b") == 3


def test_keys_with_dots_are_reached_in_brackets() -> None:
    (document,) = load("evictionHard:\n  memory.available: 1Gi\n")
    assert document.line_of('evictionHard["memory.available"]') == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("on", True),
        ("n", False),
        ("~", None),
        ("0644", 420),
        ("0o644", 420),
        ("0x1F", 31),
        ("1_000", 1000),
        ("1e3", 1000.0),
        ("08", 8.0),
        ("1:30", "1:30"),
        ("2001-01-01", "2001-01-01"),
        ("-7", -7),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("!!float 1", 1.0),
        ("1.2.3", "1.2.3"),
        ("+", "+"),
        ("0x", "0x"),
    ],
)
def test_plain_scalars_mean_what_kubernetes_yaml_reader_says(text: str, value: object) -> None:
    if value is None:
        text, value = f"k: {text}", {"k": None}
    result = load(text)[0].value
    assert result == value
    assert type(result) is type(value)


def test_keys_are_always_text() -> None:
    assert load("1: a\ntrue: b\n")[0].value == {"1": "a", "true": "b"}


def test_merge_keys_fill_in_what_the_map_does_not_say() -> None:
    assert load("a: &a {x: 1, z: 2}\nb: {<<: *a, z: 3}\n")[0].value["b"] == {"x": 1, "z": 3}
    assert load("a: &a {x: 1}\nb: &b {x: 2, z: 3}\nc:\n  <<: [*a, *b]\n")[0].value["c"] == {"x": 1, "z": 3}


def test_a_duplicate_key_is_named_with_its_path_and_both_lines() -> None:
    error = error_of("spec:\n  containers:\n  - name: a\n    image: b\n    name: c\n")
    assert (error.line, "containers[0].name" in error.message, "line 3" in error.message) == (5, True, True)
    assert str(error).startswith("f.yaml:5: ")


def test_a_duplicate_key_in_json_is_named_with_its_line() -> None:
    error = error_of('{"a": {\n"b": 1,\n"b": 2}}')
    assert error.line == 3
    assert "'a.b'" in error.message


def test_tolerated_duplicates_keep_the_last_value_and_are_listed() -> None:
    (document,) = load_documents(b"a:\n  b: 1\n  b: 2\n", origin="f", tolerate_duplicates=True)
    assert document.value == {"a": {"b": 2}}
    assert document.duplicates == (("a.b", 3),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a [*a]", "stands inside the value it refers to"),
        ("a: *nobody", "refers to nothing"),
        ("a: .nan", "NaN"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1e999}', "out of range"),
        ("a: 1e999", "out of range"),
        ("a: -.inf", "infinity"),
        ("[" * 5000, "nested deeper than 100 levels"),
        ('{"a":' * 50_000, "nested deeper than 100 levels"),
        ("{" * 5000, ""),
        ("- " * 3000 + "x", "nested deeper than 100 levels"),
        ("a: b: c", "invalid YAML"),
        ('{"a": 1,}x', "JSON"),
        ("a: !!python/object/apply:os.system [id]", "is not supported"),
        ("a: !secret x", "is not supported"),
        ("a: !!int x", "not of that type"),
        ("? [a]\n: b", "a key must be"),
        ("? &k {a: b}\n: c", "a key must be"),
        ("~: 1", "a key must be a name"),
        ("<<: 1", "merge key"),
        ("a: 'open", "invalid YAML"),
        ("a: \x01", "invalid YAML"),
        (b"a: \xff\xfe", "not UTF-8"),
        (b"\x7fELF\x00\x00", "binary"),
        ('{"a": "\\ud800"}', "surrogate"),
        ("a: " + "9" * 10_000, "out of range"),
        ('{"a": ' + "9" * 10_000 + "}", ""),
    ],
)
def test_what_cannot_be_used_is_one_clear_error(text: str | bytes, message: str) -> None:
    assert message in error_of(text).message


def test_a_bomb_of_aliases_is_refused_before_it_goes_off() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "aliases of this file stand for more than" in error_of("\n".join(lines)).message


def test_aliases_cannot_nest_deeper_than_the_text_may() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 150)]
    assert "nested deeper" in error_of("\n".join(lines)).message


def test_a_file_of_too_many_values_is_refused_before_it_costs_seconds() -> None:
    assert "too many values" in error_of("- a\n" * 400_000).message


def test_an_error_is_short_whatever_the_file_holds() -> None:
    key = "k" * 100_000
    assert len(str(error_of(f"{key}: 1\n{key}: 2\n"))) < 1000


def test_modest_use_of_aliases_is_fine() -> None:
    assert load("a: &a {x: [1]}\nb: *a\nc: *a\n")[0].value["c"] == {"x": [1]}


def test_errors_never_show_values() -> None:
    for text in ("password: [hunter2", "a: {password: hunter2", '{"p": "hunter2', "p: hunter2: x"):
        assert "hunter2" not in str(error_of(text))


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_bytes(b"a: " + b"x" * 10_000_000)
    with pytest.raises(DocumentError, match="is larger than"):
        load_file(str(path))


def test_paths_that_are_no_regular_file_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    expected = {"pipe": "named pipe", "loop": "symbolic links", ".": "directory", "none": "no such file"}
    for name, message in expected.items():
        with pytest.raises(DocumentError, match=message):
            load_file(str(tmp_path / name))
    with pytest.raises(DocumentError, match="device"):
        load_file("/dev/zero")
    with pytest.raises(DocumentError):
        load_file("a\0b")
