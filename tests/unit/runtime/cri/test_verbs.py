"""Verbs and the names that metrics give them."""

from __future__ import annotations

import pytest

from glasslet.runtime.cri.calls import methods_of
from glasslet.runtime.cri.verbs import Verb

OPERATIONS = {
    "checkpoint_container",
    "attach",
    "container_stats",
    "container_status",
    "create_container",
    "exec",
    "exec_sync",
    "get_container_events",
    "image_fs_info",
    "image_status",
    "list_container_stats",
    "list_containers",
    "list_images",
    "list_podsandbox",
    "list_podsandbox_stats",
    "podsandbox_stats",
    "podsandbox_status",
    "port_forward",
    "pull_image",
    "remove_container",
    "remove_image",
    "remove_podsandbox",
    "reopen_container_log",
    "run_podsandbox",
    "runtime_config",
    "start_container",
    "status",
    "stop_container",
    "stop_podsandbox",
    "update_container",
    "update_podsandbox_resources",
    "update_runtime_config",
    "version",
}


def test_operations_are_upstreams_names() -> None:
    assert {verb.operation for verb in Verb} == OPERATIONS


@pytest.mark.parametrize("verb", list(Verb))
def test_every_verb_is_a_call_of_the_protocol(verb: Verb) -> None:
    assert verb in {**methods_of("RuntimeService"), **methods_of("ImageService")}


def test_a_service_that_does_not_exist_has_no_calls() -> None:
    with pytest.raises(KeyError):
        methods_of("NoService")
