"""State files: the agent's own after a crash, and the Go kubelet's. Checksums are made to fit half of the time."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from random import Random

from glasslet.api.codec import DecodeError, decode
from glasslet.api.persistent_volume import PersistentVolume
from glasslet.devices import checkpoint as devices
from glasslet.host.files.small_files import read_checked, write_checked
from glasslet.host.user_ids import NoUserIds, _first_id
from glasslet.identity.certificate import BadCertificate, read_certificates, read_request
from glasslet.pods.resize import checkpoint as resizes
from glasslet.probes.memory import _State as ProbeState
from glasslet.record.archive import Archive
from glasslet.record.disk import Line, packed, unpacked
from glasslet.record.events import ChangeObserved, Decided, FindingMade, StationSpan, Waited
from glasslet.runtime.images.pull_records import BadRecord, decode_intent, decode_record
from glasslet.sources.last_known import LastKnown
from tests.fuzz.engine import Target
from tests.fuzz.mutation import as_json, mutated, mutated_tree
from tests.fuzz.targets.making import bytes_target, in_file, scratch, tree_target

DATA = Path(__file__).parents[2] / "data"
SEEDS = Path(__file__).parents[1] / "seeds"
RESIZES = {
    "entries": {"uid-1": {"ContainerResources": {"main": {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}}}}}
}
PULL = {
    "kind": "ImagePulledRecord",
    "apiVersion": "kubelet.config.k8s.io/v1alpha1",
    "lastUpdatedTime": "2026-01-02T03:04:05Z",
    "imageRef": "sha256:0",
    "credentialMapping": {
        "a/b": {"kubernetesSecrets": [{"uid": "u", "namespace": "n", "name": "s", "credentialHash": "h"}]}
    },
}
INTENT = {"kind": "ImagePullIntent", "apiVersion": "kubelet.config.k8s.io/v1alpha1", "image": "a/b"}
USERNS = {
    "uidMappings": [{"hostId": 65536, "containerId": 0, "length": 65536}],
    "gidMappings": [{"hostId": 65536, "containerId": 0, "length": 65536}],
}
REMEMBERED = {
    "version": 1,
    "pods": [
        {"metadata": {"name": "a", "namespace": "d", "uid": "u"}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
    ],
}
PROBES = {"version": 1, "started": ["c1"], "ready": ["c1"]}


def targets() -> list[Target]:
    """All kinds."""
    checkpoints = [path.read_bytes() for path in sorted((DATA / "device_checkpoints").glob("*.json"))]
    pem = (SEEDS / "certificate.pem").read_bytes()
    return [
        bytes_target("device checkpoint", devices.decode, checkpoints, errors=(devices.BadCheckpoint,)),
        tree_target("resizes", _resizes, [RESIZES], errors=(resizes.DamagedCheckpoint,)),
        tree_target("pull record", decode_record, [PULL], errors=(BadRecord,)),
        tree_target("pull intent", decode_intent, [INTENT], errors=(BadRecord,)),
        tree_target(
            "user ids", lambda data: _first_id(data.decode("utf-8", "replace"), 65536), [USERNS], errors=(NoUserIds,)
        ),
        tree_target("probe memory", lambda data: decode(data, ProbeState), [PROBES], errors=(DecodeError,)),
        tree_target("remembered pods", lambda data: decode(data, LastKnown), [REMEMBERED], errors=(DecodeError,)),
        tree_target(
            "claim notes",
            lambda data: decode(data, PersistentVolume),
            [{"metadata": {"name": "pv"}, "spec": {"nfs": {"server": "s", "path": "/"}}}],
            errors=(DecodeError,),
        ),
        bytes_target("checked file", in_file("checked", read_checked), [_checked()]),
        Target("record line", _make_line, unpacked, (), [_line(event) for event in _EVENTS]),
        Target("record segment", _make_segment, _segment, (), [b"".join(_line(event) for event in _EVENTS)]),
        bytes_target("certificate", read_certificates, [pem], errors=(BadCertificate,)),
        bytes_target("signing request", read_request, [(SEEDS / "request.pem").read_bytes()], errors=(BadCertificate,)),
        bytes_target("DER of a certificate", _certificate_of, [_der(pem)], errors=(BadCertificate,)),
    ]


def _resizes(data: bytes) -> object:
    text = data.decode("utf-8", "replace")
    file = json.dumps({"data": text, "checksum": resizes.checksum(text)}).encode()
    return resizes.load(file)


def _checked() -> bytes:
    path = scratch() / "checked-seed"
    write_checked(str(path), b'{"version": 1}')
    return path.read_bytes()


_EVENTS = (
    StationSpan(1.0, 2.0, "sandbox", "", "ok", "attempt 0"),
    Waited(1.0, 1.5, "cri_call", "RunPodSandbox", "main"),
    Decided(1.0, "plan", "", (("actions", "[]"),)),
    ChangeObserved(1.0, "container main", "running", "exited 1"),
    FindingMade(1.0, "bad file"),
)


def _line(event: StationSpan | Waited | Decided | ChangeObserved | FindingMade) -> bytes:
    return packed(Line(run="r1", pod=("default", "web", "u1"), events=(event,)))


def _make_line(dice: Random) -> bytes:
    """A line whose checksum fits, of a damaged body; or a damaged line."""
    seeds = [_line(event) for event in _EVENTS] + [packed(Line(run="r1", started=1.0, before=0.5))]
    line = dice.choice(seeds)
    if dice.random() < 0.3:
        return mutated(line, dice, seeds)
    body = (
        as_json(mutated_tree(json.loads(line[9:]), dice)) if dice.random() < 0.6 else mutated(line[9:-1], dice, seeds)
    )
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _make_segment(dice: Random) -> bytes:
    return b"".join(_make_line(dice) for _ in range(dice.randrange(1, 5)))


def _segment(data: bytes) -> object:
    folder = scratch() / "records"
    folder.mkdir(exist_ok=True)
    (folder / "00000001.segment").write_bytes(data)
    archive = Archive(folder)
    found = [archive.read(uid) for uid in ("u1", "")]
    return archive.pods(), [one.record() for one in found if one is not None]


def _der(pem: bytes) -> bytes:
    return base64.b64decode(b"".join(pem.split(b"\n")[1:-2]))


def _certificate_of(der: bytes) -> object:
    return read_certificates(
        b"-----BEGIN CERTIFICATE-----\n" + base64.b64encode(der) + b"\n-----END CERTIFICATE-----\n"
    )
