"""What did not fit, with what the node has."""

from __future__ import annotations

import pytest

from glasslet.admission.candidate import Candidate
from glasslet.admission.chain import PodAdmission
from glasslet.admission.misfit import misfit
from glasslet.admission.predicates import predicates
from glasslet.api.codec import convert
from glasslet.api.node import Taint
from glasslet.api.scheduling import Affinity
from glasslet.exchange.admission import Rejected
from tests.builders.admission import api_pod, candidate, node

AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}]}]
        }
    }
}


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (
            candidate(api_pod(node_selector={"disk": "ssd"})),
            "the pod's nodeSelector wants label disk=ssd, the node has no such label",
        ),
        (
            candidate(api_pod(node_selector={"disk": "ssd"}), on=node({"disk": "hdd"})),
            "the pod's nodeSelector wants label disk=ssd, the node has disk=hdd",
        ),
        (
            candidate(api_pod(affinity=convert(AFFINITY, Affinity)), on=node({"disk": "hdd"})),
            "the pod's affinity wants label disk In ssd,nvme, the node has disk=hdd",
        ),
        (
            candidate(api_pod(ports=[{"host_port": 80}]), api_pod("other", ports=[{"host_port": 80}])),
            "host port 80/TCP is held by pod default/other",
        ),
        (
            candidate(api_pod(), on=node(taints=(Taint(key="k", value="v", effect="NoExecute"),))),
            "the node has taint k=v:NoExecute, which the pod does not tolerate",
        ),
    ],
)
def test_a_refusal_names_the_one_thing_that_did_not_fit(what: Candidate, words: str) -> None:
    refusal = predicates(what)
    assert isinstance(refusal, Rejected)
    assert misfit(what, refusal) == words


def test_admission_notes_what_did_not_fit() -> None:
    noted: list[str] = []
    one = candidate(api_pod(node_selector={"disk": "ssd"}))
    admission = PodAdmission(node=lambda: one.node, allocatable=lambda: one.allocatable, note=noted.append)
    assert isinstance(admission(one.pod, []), Rejected)
    assert noted == ["the pod's nodeSelector wants label disk=ssd, the node has no such label"]
