"""The short form of the lane: a boot, five pods, a restart of the unit, a shutdown, and the boot after it."""

from __future__ import annotations

from tests.fakes.control_plane import Plain, condition
from tests.machine.node import Node
from tests.machine.pods import containers, five_pods, started


def test_five_pods_outlive_a_restart_and_are_reported_before_the_machine_is_off(node: Node) -> None:
    plane = node.plane
    started(plane, *five_pods())
    before = containers(plane)
    node.agent.restart()
    node.wait_until_ready()
    assert containers(plane) == before

    assert "kubelet" in node.machine.run("systemd-inhibit --list --no-legend")
    node.machine.power_off()
    for name, found in plane.pods().items():
        assert ended_well(found), (name, found["status"])
    gone_down = plane.get("node", "node-a")
    assert condition(gone_down, "Ready") == "False"

    node.switch_on()
    for name, found in plane.pods().items():
        assert ended_well(found), (name, found["status"])


def ended_well(found: Plain) -> bool:
    """As docs/node-shutdown.md says; these containers end with 0 when they are asked to."""
    status = found["status"]
    (main,) = status["containerStatuses"]
    ended = main["state"].get("terminated", {})
    reasons = {one.get("reason") for one in status["conditions"] if one["type"] == "DisruptionTarget"}
    return (status["phase"], ended.get("exitCode"), reasons) == ("Succeeded", 0, {"TerminationByKubelet"})
