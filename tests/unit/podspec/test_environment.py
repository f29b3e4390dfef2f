from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest

from glasslet.podspec.container import container_spec
from glasslet.podspec.environment import environment
from glasslet.podspec.errors import ConfigError
from glasslet.podspec.expansion import MAX_TEXT, MAX_TOTAL, expand, expand_strictly
from tests.builders.podspec import container_request, pod_of


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        # behaviours.md §21: "$$ gives $; unresolved stays as written"
        ("plain", "plain"),
        ("$(A)", "1"),
        ("x$(A)y$(B)z", "x1ytwoz"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$(A", "$(A"),
        ("$A", "$A"),
        ("100$", "100$"),
        ("$()", "$()"),
        ("$(A)$(A)", "11"),
        ("$(EMPTY)!", "!"),
        ("$($(A))", "$($(A))"),
    ],
)
def test_references_are_expanded_as_the_api_documents(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1", "B": "two", "EMPTY": ""}) == expanded


def test_references_that_never_end_cost_no_time() -> None:
    # Each was followed to the end of the text: half a minute on the event loop.
    text = "$(" * (MAX_TEXT // 4)
    began = time.perf_counter()
    assert expand(f"$(A){text}$$", {"A": "1"}) == f"1{text}$"
    assert time.perf_counter() - began < 2


def test_expansion_is_not_repeated_on_its_result() -> None:
    assert expand("$(A)", {"A": "$(B)", "B": "deep"}) == "$(B)"


def test_an_entry_sees_only_those_before_it() -> None:
    # behaviours.md §21: "replaced if defined earlier (env) or in the final env (command)"
    env = [{"name": "A", "value": "$(B)"}, {"name": "B", "value": "2"}, {"name": "C", "value": "$(B)"}]
    pod = pod_of({"env": env, "command": ["echo", "$(A)", "$(B)"], "args": ["$(C)"]})
    spec = container_spec(container_request(pod))
    assert dict(spec.envs) == {"A": "$(B)", "B": "2", "C": "2"}
    assert spec.command == ("echo", "$(B)", "2")
    assert spec.args == ("2",)


def test_own_entries_win_over_envs_from_and_later_entries_over_earlier() -> None:
    # behaviours.md §21: "Precedence: services, then envFrom in order, then env in order (later wins)"
    pod = pod_of({"env": [{"name": "A", "value": "env"}, {"name": "D", "value": "1"}, {"name": "D", "value": "$(D)2"}]})
    request = container_request(pod, envs_from=(("A", "service"), ("A", "config"), ("B", "config")))
    assert environment(request) == {"A": "env", "B": "config", "D": "12"}


def test_values_of_envs_from_can_be_referred_to() -> None:
    pod = pod_of({"env": [{"name": "URL", "value": "http://$(SVC_HOST)"}]})
    assert environment(container_request(pod, envs_from=(("SVC_HOST", "10.0.0.1"),)))["URL"] == "http://10.0.0.1"


def test_an_empty_value_is_a_defined_variable() -> None:
    assert environment(container_request(pod_of({"env": [{"name": "A"}]}))) == {"A": ""}


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        ({"configMapKeyRef": {"name": "cfg", "key": "k"}}, "couldn't get configMap default/cfg, no kubeClient defined"),
        (
            {"configMapKeyRef": {"name": "cfg", "key": "k", "optional": True}},
            "couldn't get configMap default/cfg, no kubeClient defined",
        ),
        ({"secretKeyRef": {"name": "s", "key": "k"}}, "couldn't get secret default/s, no kubeClient defined"),
    ],
)
def test_an_unresolved_key_reference_is_refused_and_named(ref: dict[str, object], message: str) -> None:
    pod = pod_of({"env": [{"name": "A", "valueFrom": ref}]})
    with pytest.raises(ConfigError) as caught:
        environment(container_request(pod))
    assert (caught.value.reason, caught.value.message) == ("CreateContainerConfigError", message)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapRef": {"name": "cfg"}}, "couldn't get configMap default/cfg, no kubeClient defined"),
        ({"secretRef": {"name": "s"}}, "couldn't get secret default/s, no kubeClient defined"),
    ],
)
def test_an_unresolved_env_from_is_refused_and_named(source: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        environment(container_request(pod_of({"envFrom": [source]})))


def test_resolved_keys_are_taken_by_their_position() -> None:
    # behaviours.md §21: "Missing required key or object: CreateContainerConfigError; optional: variable not set."
    env = [
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "a"}}},
        {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "b", "optional": True}}},
        {"name": "C", "value": "$(A)!"},
    ]
    request = container_request(pod_of({"env": env}), references_resolved=True, key_refs={0: "open sesame", 1: None})
    assert environment(request) == {"A": "open sesame", "C": "open sesame!"}


def test_a_key_that_the_resolver_did_not_find_is_named() -> None:
    pod = pod_of({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "a"}}}]})
    with pytest.raises(ConfigError, match="couldn't find key a in Secret default/s"):
        environment(container_request(pod, references_resolved=True))


def test_strict_expansion_names_all_that_is_missing() -> None:
    # behaviours.md §21: "subPathExpr with an undefined name or an empty result fails the container"
    with pytest.raises(ConfigError, match="missing value for B, EMPTY"):
        expand_strictly("$(EMPTY)/$(A)/$(B)", {"A": "1", "EMPTY": ""})


def test_strict_expansion_keeps_escaped_references() -> None:
    assert expand_strictly("$$(A)/$(A)", {"A": "1"}) == "$(A)/1"


def test_values_of_files_are_taken_by_their_position_also_without_an_api_server() -> None:
    selector = {"volumeName": "v", "path": "env", "key": "k"}
    env = [
        {"name": "A", "valueFrom": {"fileKeyRef": selector}},
        {"name": "B", "valueFrom": {"fileKeyRef": {**selector, "optional": True}}},
        {"name": "C", "value": "$(A)!"},
    ]
    request = container_request(pod_of({"env": env}), file_keys={0: "one", 1: None})
    assert environment(request) == {"A": "one", "C": "one!"}


def doubling(levels: int) -> list[dict[str, str]]:
    """Variables of which each is the one before it, twice: the last has 2^levels KiB."""
    first = {"name": "V0", "value": "x" * 1024}
    return [first, *({"name": f"V{n}", "value": f"$(V{n - 1})$(V{n - 1})"} for n in range(1, levels + 1))]


def refused(**fields: object) -> str:
    with pytest.raises(ConfigError) as error:
        container_spec(container_request(pod_of(fields)))
    assert error.value.reason == "CreateContainerConfigError"
    return error.value.message


def peak_bytes(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_doubling_ends_at_the_longest_text_that_a_process_can_be_started_with() -> None:
    assert refused(env=doubling(18)) == (
        f"environment variable V7: more than {MAX_TEXT} bytes, the most that a process can be started with"
    )
    assert peak_bytes(lambda: refused(env=doubling(18))) < 2_000_000


@pytest.mark.parametrize("field", ["command", "args"])
def test_a_command_that_expands_to_more_than_a_process_can_be_started_with_is_refused(field: str) -> None:
    env = [{"name": "A", "value": "x" * 100_000}]
    assert refused(env=env, **{field: ["a", "$(A)$(A)"]}).startswith(f"{field}[1]: more than {MAX_TEXT} bytes")
    wide = {field: ["$(A)"] * 10_000}
    assert refused(env=env, **wide).startswith(f"{field}: more than {MAX_TOTAL} bytes together")
    assert peak_bytes(lambda: refused(env=env, **wide)) < 4 * MAX_TOTAL


def test_an_environment_is_bounded_as_a_whole() -> None:
    env = [{"name": "A", "value": "x" * 100_000}, *({"name": f"B{n}", "value": "$(A)"} for n in range(10_000))]
    assert refused(env=env).startswith(f"environment: more than {MAX_TOTAL} bytes together")


def test_a_variable_that_is_set_again_counts_once() -> None:
    env = [{"name": "A", "value": "x" * 100_000}] * 1000
    assert environment(container_request(pod_of({"env": env})))["A"] == "x" * 100_000


@pytest.mark.parametrize(("value", "fits"), [("x" * (MAX_TEXT - 2), True), ("x" * (MAX_TEXT - 1), False)])
def test_name_and_value_share_the_room_of_one_text(value: str, fits: bool) -> None:
    request = container_request(pod_of({}), envs_from=(("A", value),))
    if fits:
        assert environment(request) == {"A": value}
    else:
        with pytest.raises(ConfigError, match="environment variable A: more than"):
            environment(request)


def test_room_is_counted_in_bytes() -> None:
    with pytest.raises(ConfigError, match="environment variable A: more than"):
        environment(container_request(pod_of({}), envs_from=(("A", "ü" * (MAX_TEXT // 2)),)))


def test_a_sub_path_expression_is_bounded_too() -> None:
    with pytest.raises(ConfigError, match="subPathExpr: more than"):
        expand_strictly("$(A)" * 1000, {"A": "x" * 1000})
