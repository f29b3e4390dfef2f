"""What people write: manifests, KubeletConfiguration, flags, kubeconfig, credential files."""

from __future__ import annotations

from pathlib import Path
from random import Random

from glasslet.config.check import check
from glasslet.config.credential_providers import read_credential_providers
from glasslet.config.document import DocumentError
from glasslet.config.documents import load_documents
from glasslet.config.duration import Duration
from glasslet.config.flags.parsing import parse
from glasslet.config.flags.table import FLAGS
from glasslet.config.machine import MachineFacts
from glasslet.kubeapi.kubeconfig import KubeconfigError, load_kubeconfig
from glasslet.runtime.images.keyring import BadKeyring, fits, parse_config_json, parse_dockercfg
from glasslet.runtime.images.plugin_messages import PluginFailed, parse_answer
from glasslet.sources.manifest import ManifestReader
from glasslet.sources.static import Origin
from tests.fuzz.engine import Target
from tests.fuzz.mutation import NUMBERS, PIECES, mutated
from tests.fuzz.targets.making import bytes_target, in_file, tree_target

DATA = Path(__file__).parents[2] / "data"
EXAMPLES = Path(__file__).parents[3] / "examples" / "pods"
CONFIGURATION = b"""\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
staticPodURLHeader: {Authorization: [hunter2]}
evictionHard: {memory.available: 5%, nodefs.available: 1Gi}
featureGates: {MemoryQoS: true, AllAlpha: false}
logging: {format: json, verbosity: 3, options: {json: {infoBufferSize: "0"}}}
reservedMemory:
- numaNode: 0
  limits: {memory: 1Gi}
registerWithTaints: &taints
- {key: a, value: b, effect: NoSchedule}
shutdownGracePeriodByPodPriority:
- {priority: 5, shutdownGracePeriodSeconds: 5}
userNamespaces: {idsPerPod: 65536}
clusterDNS: [10.0.0.10]
syncFrequency: 1m30s
maxPods: 110
"""
KUBECONFIG = b"""\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: AAEC}}]
users: [{name: u, user: {client-certificate-data: AAEC, client-key-data: AAEC}}]
"""
PROVIDERS = b"""\
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: ecr
  matchImages: ["*.registry.example"]
  defaultCacheDuration: 10m
  apiVersion: credentialprovider.kubelet.k8s.io/v1
"""
YAML_WORDS = (
    b"&a ",
    b"*a",
    b"<<: *taints",
    b"!!binary ",
    b"- ",
    b"? ",
    b": ",
    b"\n---\n",
    b"|\n",
    b">-\n",
    b"  ",
    b"0o17",
    b"yes",
    b"~",
    b".inf",
)
ANSWER = {
    "kind": "CredentialProviderResponse",
    "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
    "cacheKeyType": "Image",
    "cacheDuration": "10m0s",
    "auth": {"*.example/a": {"username": "u", "password": "p"}},
}
READER = ManifestReader("node-1")
ORIGIN = Origin("file", "/m")


def targets() -> list[Target]:
    """All kinds."""
    manifests = [path.read_bytes() for path in sorted(EXAMPLES.glob("*.yaml"))]
    manifests.append((DATA / "manifests" / "everything.yaml").read_bytes())
    config_json = {
        "auths": {"https://index.docker.io/v1/": {"auth": "dTpw"}, "reg:5000/a": {"username": "u", "password": "p"}}
    }
    return [
        bytes_target("YAML", _yaml, [CONFIGURATION, *manifests[:3]], errors=(DocumentError,), words=YAML_WORDS),
        bytes_target("manifest", _manifest, manifests, errors=(DocumentError,), words=YAML_WORDS),
        bytes_target("KubeletConfiguration", in_file("kubelet", _configuration), [CONFIGURATION], words=YAML_WORDS),
        Target("flags", _argv, _flags, (), [["--max-pods=3", "--v=2"]]),
        bytes_target(
            "duration", lambda data: Duration.parse(data.decode()), [b"1h2m3.5s", b"-100ms", b"0"], errors=(ValueError,)
        ),
        bytes_target(
            "kubeconfig",
            in_file("kubeconfig", load_kubeconfig),
            [KUBECONFIG],
            errors=(KubeconfigError,),
            words=YAML_WORDS,
        ),
        bytes_target("credential providers", in_file("providers.yaml", _providers), [PROVIDERS], words=YAML_WORDS),
        tree_target("config.json", lambda data: _keys(parse_config_json(data)), [config_json], errors=(BadKeyring,)),
        tree_target(
            "dockercfg", lambda data: _keys(parse_dockercfg(data)), [config_json["auths"]], errors=(BadKeyring,)
        ),
        tree_target(
            "credential plugin answer",
            lambda data: parse_answer(data, str(ANSWER["apiVersion"])),
            [ANSWER],
            errors=(PluginFailed,),
        ),
    ]


def _yaml(data: bytes) -> object:
    documents = load_documents(data, origin="f")
    return [document.line_of("spec.containers[0].name") for document in documents]


def _manifest(data: bytes) -> object:
    return [str(READER.pods(document, ORIGIN)) for document in load_documents(data, origin="f")]


def _configuration(path: str) -> object:
    report = check([f"--config={path}"], machine=MachineFacts())
    for problem in report.problems:
        assert problem.message
        assert problem.origin
    return report


def _providers(path: str) -> object:
    return read_credential_providers(path, "/nowhere", tokens=True)


def _keys(auths: object) -> object:
    return [fits(key, "registry.example:5000/a/b") for key in auths] if isinstance(auths, dict) else None


def _argv(dice: Random) -> list[str]:
    words = []
    for _ in range(dice.randrange(1, 5)):
        name = dice.choice(list(FLAGS)) if dice.random() < 0.95 else "nonsense"
        value = dice.choice(
            (
                b"",
                b"x",
                b"true",
                b"a=b",
                b"a=b:NoSchedule",
                b"0:memory=1Gi",
                b"1m",
                b"5%",
                dice.choice(NUMBERS),
                dice.choice(PIECES),
            )
        )
        if dice.random() < 0.3:
            value = mutated(value, dice, [b"a=b,c=d"])
        text = value.decode("utf-8", "surrogateescape").replace("\x00", "")
        words += [f"--{name}={text}"] if dice.random() < 0.7 else [f"--{name}", text]
    return words


def _flags(argv: list[str]) -> object:
    return parse(argv)
