"""What a container sees of its devices."""

from __future__ import annotations

from typing import Any

from glasslet.api.env import EnvVar
from glasslet.devices._generated import deviceplugin_pb2 as messages
from glasslet.devices.container_devices import container_devices
from glasslet.podspec.container import container_spec
from glasslet.podspec.request import ContainerRequest, NodeFacts
from glasslet.runtime.model import Image
from glasslet.runtime.spec import ContainerDevices, Device, Mount
from tests.builders.pod import container, pod


def answer(**fields: Any) -> bytes:
    return messages.ContainerAllocateResponse(**fields).SerializeToString()


GPU = answer(
    envs={"VISIBLE": "0"},
    mounts=[messages.Mount(container_path="/lib/gpu", host_path="/opt/gpu", read_only=True)],
    devices=[messages.DeviceSpec(container_path="/dev/gpu0", host_path="/dev/gpu7", permissions="rw")],
    annotations={"example.com/gpu": "seven"},
    cdi_devices=[messages.CDIDevice(name="example.com/gpu=7")],
)


def test_everything_that_a_plugin_answers_is_given() -> None:
    # behaviours.md §24: "Env, mounts, devices, annotations, CDI names from Allocate go to the container."
    assert container_devices({"example.com/gpu": GPU}) == (
        ContainerDevices(
            envs=(("VISIBLE", "0"),),
            mounts=(Mount(container_path="/lib/gpu", host_path="/opt/gpu", readonly=True),),
            devices=(Device(container_path="/dev/gpu0", host_path="/dev/gpu7", permissions="rw"),),
            annotations={"example.com/gpu": "seven"},
            cdi_devices=("example.com/gpu=7",),
        ),
        (),
    )


def test_what_two_plugins_say_in_the_same_words_is_given_once() -> None:
    together, conflicts = container_devices({"a": GPU, "b": GPU})
    assert together == container_devices({"a": GPU})[0]
    assert conflicts == ()


def test_a_contradiction_is_told_without_values_and_the_first_counts() -> None:
    together, conflicts = container_devices({"a": answer(envs={"KEY": "one"}), "b": answer(envs={"KEY": "two"})})
    assert together.envs == (("KEY", "one"),)
    assert conflicts == ("device plugin b: environment variable KEY has another value already",)


def test_devices_come_before_what_the_pod_says() -> None:
    # behaviours.md §21: "The list begins with device plugin variables, then the pod's."
    # behaviours.md §19: "Mount order over CRI: device plugin mounts, volumeMounts in spec order, /etc/hosts, ..."
    spec = container_spec(
        ContainerRequest(
            pod=pod(),
            container=container(env=(EnvVar(name="MINE", value="1"),)),
            attempt=0,
            image=Image(id="sha256:1"),
            node=NodeFacts(name="n"),
            devices=container_devices({"example.com/gpu": GPU})[0],
            etc_hosts="/hosts",
        )
    )
    assert [name for name, _ in spec.envs] == ["VISIBLE", "MINE"]
    assert [mount.container_path for mount in spec.mounts] == ["/lib/gpu", "/etc/hosts"]
    assert spec.devices[0].host_path == "/dev/gpu7"
    assert spec.cdi_devices == ("example.com/gpu=7",)
    assert spec.annotations["example.com/gpu"] == "seven"
