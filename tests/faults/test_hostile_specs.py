"""Pods whose specification is the attack: too much of everything, hooks and probes that never end."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tests.fakes.agent import FOR_EVER, busybox_pod
from tests.fakes.cgroups import real_root
from tests.fakes.containerd import PrivateContainerd
from tests.faults.table import LONG, Row, sized
from tests.faults.under_attack import under_attack
from tests.faults.world import gone, ready

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(1800 if LONG else 300)]


async def test_variables_that_double_are_refused_with_a_reason(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    async with under_attack(containerd, tmp_path, row) as agent:
        row.did("30 variables, each twice the one before")
        manifest = busybox_pod("hostile")
        doubling = [{"name": f"A{n + 1}", "value": f"$(A{n})$(A{n})"} for n in range(30)]
        manifest["spec"]["containers"][0]["env"] = [{"name": "A0", "value": "x" * 1000}, *doubling]
        agent.put(manifest)
        rows = await agent.wait_for(lambda rows: "hostile" in rows)
        name, why = rows["hostile"]["name"], ""
        async with asyncio.timeout(60):
            while "CreateContainerConfigError" not in why:
                await asyncio.sleep(0.1)
                why = str(await agent.ask(f"/glass/v1/pods/default/{name}/why"))
        row.figure("reason", why[why.find("CreateContainerConfigError") :][:160])
        assert "environment variable A8: more than" in why
        row.holds("the reason names the variable and the limit")
        agent.remove("hostile")
        await agent.wait_for(gone("hostile"))


async def test_a_thousand_variables_and_very_many_projected_files_are_served(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    count = sized(2_000, 10_000)
    async with under_attack(containerd, tmp_path, row) as agent:
        row.did(f"1,000 variables and {count} projected sources")
        source = {"downwardAPI": {"items": [{"path": "f0", "fieldRef": {"fieldPath": "metadata.name"}}]}}
        sources = [
            {"downwardAPI": {"items": [{"path": f"d{n % 100}/f{n}", "fieldRef": {"fieldPath": "metadata.name"}}]}}
            for n in range(count)
        ]
        manifest = busybox_pod("hostile", volumes=[{"name": "v", "projected": {"sources": [source, *sources]}}])
        main = manifest["spec"]["containers"][0]
        main["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
        main["env"] = [{"name": f"V{n}", "value": "x" * 100} for n in range(1000)]
        agent.put(manifest)
        await agent.wait_for(ready("hostile"), seconds=sized(120, 600))
        agent.remove("hostile")
        await agent.wait_for(gone("hostile"))
        row.holds("it starts and can be removed")


async def test_a_hook_that_leaves_processes_behind_cannot_outlive_its_grace(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    settings = {"cgroupsPerQOS": True, "enforceNodeAllocatable": ["pods"], "podPidsLimit": 128}
    with real_root() as root:
        async with under_attack(containerd, tmp_path, row, cgroupRoot=root.path, **settings) as agent:
            row.did("a preStop hook forks without end")
            manifest = busybox_pod("hostile", "trap '' TERM; while :; do sleep 1000 & wait; done")
            forks = ["sh", "-c", "while :; do sh -c 'while :; do sleep 1000 & done' 2>/dev/null; done"]
            manifest["spec"]["containers"][0]["lifecycle"] = {"preStop": {"exec": {"command": forks}}}
            manifest["spec"]["terminationGracePeriodSeconds"] = 3
            agent.put(manifest)
            await agent.wait_for(ready("hostile"))
            began = time.monotonic()
            agent.remove("hostile")
            await agent.wait_for(gone("hostile"))
            row.figure("seconds until removed", time.monotonic() - began)
            assert time.monotonic() - began < 90
            row.holds("removed after its grace")


async def test_probes_that_lead_back_to_themselves_only_fail(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    script = r"#!/bin/sh\nprintf \"Status: 302\\r\\nLocation: /cgi-bin/r\\r\\n\\r\\n\"\n"
    serve = f"mkdir -p /www/cgi-bin; printf '{script}' >/www/cgi-bin/r; chmod +x /www/cgi-bin/r; httpd -p 8080 -h /www"
    async with under_attack(containerd, tmp_path, row) as agent:
        row.did("probes follow redirects to themselves, start more processes, and never end")
        manifest = busybox_pod("hostile", f"{serve}; {FOR_EVER}")
        main = manifest["spec"]["containers"][0]
        main["livenessProbe"] = {
            "exec": {"command": ["sh", "-c", "sleep 1000 & sleep 1000"]}, "periodSeconds": 1, "failureThreshold": 1000
        }  # fmt: skip
        main["readinessProbe"] = {"httpGet": {"path": "/cgi-bin/r", "port": 8080}, "periodSeconds": 1}
        agent.put(manifest)
        await agent.wait_for(lambda rows: rows.get("hostile", {}).get("phase") == "Running")
        await asyncio.sleep(sized(10, 300))
        rows = await agent.pods()
        assert (rows["hostile"]["ready"], rows["hostile"]["restarts"]) == (0, 0)
        agent.remove("hostile")
        await agent.wait_for(gone("hostile"))
        row.holds("not ready, not restarted, removed")
