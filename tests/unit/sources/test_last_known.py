"""The setting, and that what is written is what is read."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from glasslet.api.codec import convert, decode, encode
from glasslet.api.pod import Pod
from glasslet.sources.last_known import VERSION, LastKnown, remembers_api_pods

EVERYTHING = Path(__file__).parents[2] / "data" / "manifests" / "everything.yaml"


def test_it_is_off_unless_asked_for() -> None:
    assert not remembers_api_pods({})
    assert remembers_api_pods({"GLASSLET_REMEMBER_API_PODS": "True"})


def test_another_word_is_an_error_that_names_variable_value_and_what_is_allowed() -> None:
    with pytest.raises(ValueError, match=r"GLASSLET_REMEMBER_API_PODS='yes': want true or false"):
        remembers_api_pods({"GLASSLET_REMEMBER_API_PODS": "yes"})


def test_a_pod_with_every_field_comes_back_as_it_was() -> None:
    state = LastKnown(version=VERSION, pods=(convert(yaml.safe_load(EVERYTHING.read_text()), Pod),))
    assert decode(encode(state), LastKnown) == state
