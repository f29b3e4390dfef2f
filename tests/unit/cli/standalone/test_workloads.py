"""What `up` makes of the objects of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from glasslet.answers.agent import ManifestProblem
from glasslet.cli.standalone.manifests import FollowedFolders, Rules, add, broken_manifest_lines, unlink
from glasslet.cli.standalone.workloads import Expansion, NotRunnable, expanded, is_plain_pod

CLAIMS = Path("/state/claims")


def workload(kind: str, **spec: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": "busybox"}], **spec.pop("pod", {})}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": template, **spec},
    }


def run(*documents: object, cron_jobs: bool = False) -> Expansion:
    return expanded(documents, claims=CLAIMS, cron_jobs=cron_jobs)


def test_a_deployment_is_one_pod_of_its_template_and_says_what_is_not_done() -> None:
    made = run(workload("Deployment", replicas=3))
    (pod,) = made.pods
    assert (pod["kind"], pod["metadata"]) == ("Pod", {"name": "web", "namespace": "shop", "labels": {"app": "web"}})
    assert made.notes == ("Deployment shop/web runs as one pod, shop/web; not done: replicas: 3, rolling updates",)


def test_a_stateful_set_has_its_first_name_and_folders_for_its_claims() -> None:
    made = run(workload("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": "data"}}]))
    (pod,) = made.pods
    assert pod["metadata"]["name"] == "web-0"
    folder = {"path": "/state/claims/shop/data-web-0", "type": "DirectoryOrCreate"}
    assert pod["spec"]["volumes"] == [{"name": "data", "hostPath": folder}]
    assert "its claims are folders below /state/claims/shop" in made.notes[0]


def test_a_claim_of_the_same_file_becomes_a_folder_and_any_other_stays() -> None:
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "mine"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "other"}},
    ]
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "mine", "namespace": "shop"}}
    found = run(claim, workload("Deployment", pod={"volumes": volumes})).pods[0]["spec"]["volumes"]
    assert found[0]["hostPath"]["path"] == "/state/claims/shop/mine"
    assert found[1] == volumes[1]


def test_a_job_runs_once_and_keeps_its_deadline() -> None:
    made = run(workload("Job", completions=5, activeDeadlineSeconds=60, pod={"restartPolicy": "Never"}))
    assert made.pods[0]["spec"]["activeDeadlineSeconds"] == 60
    assert "not done: completions: 5, another pod when this one fails" in made.notes[0]


def test_a_job_without_a_restart_policy_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(NotRunnable, match=r"Job shop/web: spec.template.spec.restartPolicy: None; allowed: Never, OnF"):
        run(workload("Job"))


def test_a_cron_job_runs_on_request_only() -> None:
    job = workload("CronJob", pod={"restartPolicy": "OnFailure"})
    job["spec"] = {"schedule": "* * * * *", "jobTemplate": {"spec": job["spec"]}}
    assert run(job).pods == ()
    assert "nothing here keeps its schedule" in run(job).notes[0]
    assert [pod["metadata"]["name"] for pod in run(job, cron_jobs=True).pods] == ["web"]


def test_objects_that_nothing_acts_on_are_named_once_for_each_kind() -> None:
    services = [{"kind": "Service", "metadata": {"name": name}} for name in ("a", "b")]
    made = run({"kind": "List", "items": [*services, workload("DaemonSet")]}, {"kind": "Namespace"})
    assert len(made.pods) == 1
    assert made.notes[1:] == ("Service default/a, default/b is left out: no addresses but the pods' own",)


def test_a_service_account_is_left_out() -> None:
    made = run(workload("DaemonSet", pod={"serviceAccountName": "web"}))
    assert "serviceAccountName" not in made.pods[0]["spec"]
    assert made.notes[0].endswith("its service account")


@pytest.mark.parametrize(
    ("documents", "plain"),
    [
        ([{"kind": "Pod"}], True),
        ([{"kind": "Pod"}, {"kind": "Pod"}], False),
        ([{"kind": "Deployment"}], False),
        ([{"kind": "Nonsense"}], True),
        (["text"], True),
        ([], True),
    ],
)
def test_the_agent_reads_files_of_one_pod_itself(documents: list[object], plain: bool) -> None:
    assert is_plain_pod(documents) == plain


def test_the_template_of_a_broken_workload_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotRunnable, match="Deployment default/x: template: want a map"):
        run({"kind": "Deployment", "metadata": {"name": "x"}, "spec": {}})


def test_pods_of_a_file_change_with_it_and_go_with_it(tmp_path: Path) -> None:
    folder, file = tmp_path / "manifests", tmp_path / "web.yaml"
    folder.mkdir()
    rules = Rules(claims=CLAIMS)
    file.write_text(yaml.safe_dump_all([workload("Deployment"), workload("StatefulSet")]))
    add(folder, [file], rules)
    assert len(list(folder.iterdir())) == 2
    file.write_text(yaml.safe_dump(workload("Deployment", pod={"hostNetwork": True})))
    FollowedFolders(folder, [str(file)], rules).update()
    (entry,) = folder.iterdir()
    assert yaml.safe_load(entry.read_text())["spec"]["hostNetwork"] is True
    assert broken_manifest_lines([ManifestProblem(file=str(entry), message="m")]) == [f"broken manifest: {file}: m"]
    assert unlink(folder, [file]) == 1
    assert list(folder.iterdir()) == []
