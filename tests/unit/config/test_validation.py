"""Each rule: a healthy configuration, one thing changed, the text that must follow (config-fields.md, flags.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from glasslet.config.defaults import with_defaults
from glasslet.config.feature_gates import FeatureGates
from glasslet.config.options import Options
from glasslet.config.problem import Step
from glasslet.config.schema import build, check_types
from glasslet.config.validation import validate
from glasslet.config.validation.finding import Finding, ValidationInput

DATA = json.loads((Path(__file__).parents[2] / "data" / "config-fields.json").read_text())
STATIC = {"cpuManagerPolicy": "static", "systemReserved": {"cpu": "1"}}
POLICY_OPTIONS = "cpuManagerPolicyOptions"


def findings(
    change: dict[str, Any],
    *,
    gates: dict[str, bool] | None = None,
    options: Options | None = None,
    cgroup_v2: bool = True,
) -> list[Finding]:
    switched = FeatureGates(gates or {})
    checked = check_types(change)
    assert (checked.mismatches, checked.unknown) == ([], [])
    # As by flags: nothing that is given is defaulted again.
    tree = with_defaults({}, switched) | checked.tree
    for name, value in checked.tree.items():
        if isinstance(value, dict) and isinstance(default := with_defaults({}, switched)[name], dict):
            tree[name] = {**default, **value}
    return validate(ValidationInput(build(tree), options or Options(kubeconfig="/k"), switched, cgroup_v2))


def test_defaults_break_no_rule() -> None:
    assert findings({}) == []


BAD: list[tuple[dict[str, Any], str]] = [
    ({"eventBurst": -1}, "invalid configuration: eventBurst (--event-burst) -1 must not be a negative number"),
    ({"eventRecordQPS": -1}, "invalid configuration: eventRecordQPS (--event-qps) -1 must not be a negative number"),
    ({"kubeAPIBurst": -1}, "invalid configuration: kubeAPIBurst (--kube-api-burst) -1 must not be a negative number"),
    ({"kubeAPIQPS": -1}, "invalid configuration: kubeAPIQPS (--kube-api-qps) -1 must not be a negative number"),
    ({"maxOpenFiles": -1}, "invalid configuration: maxOpenFiles (--max-open-files) -1 must not be a negative number"),
    ({"maxPods": -1}, "invalid configuration: maxPods (--max-pods) -1 must not be a negative number"),
    ({"podsPerCore": -1}, "invalid configuration: podsPerCore (--pods-per-core) -1 must not be a negative number"),
    ({"registryBurst": -1}, "invalid configuration: registryBurst (--registry-burst) -1 must not be a negative number"),
    (
        {"registryPullQPS": -1},
        "invalid configuration: registryPullQPS (--registry-qps) -1 must not be a negative number",
    ),
    (
        {"healthzPort": 65536},
        "invalid configuration: healthzPort (--healthz-port) 65536 must be between 1 and 65535, inclusive",
    ),
    ({"port": 0}, "invalid configuration: port (--port) 0 must be between 1 and 65535, inclusive"),
    (
        {"readOnlyPort": -1},
        "invalid configuration: readOnlyPort (--read-only-port) -1 must be between 0 and 65535, inclusive",
    ),
    (
        {"imageGCHighThresholdPercent": 101},
        "imageGCHighThresholdPercent (--image-gc-high-threshold) 101 must be between 0 and 100, inclusive",
    ),
    (
        {"imageGCLowThresholdPercent": -1},
        "imageGCLowThresholdPercent (--image-gc-low-threshold) -1 must be between 0 and 100, inclusive",
    ),
    (
        {"iptablesDropBit": 32},
        "invalid configuration: iptablesDropBit (--iptables-drop-bit) 32 must be between 0 and 31, inclusive",
    ),
    (
        {"iptablesMasqueradeBit": -1},
        "iptablesMasqueradeBit (--iptables-masquerade-bit) -1 must be between 0 and 31, inclusive",
    ),
    (
        {"oomScoreAdj": 1001},
        "invalid configuration: oomScoreAdj (--oom-score-adj) 1001 must be between -1000 and 1000, inclusive",
    ),
    (
        {"cpuCFSQuotaPeriod": "50ms"},
        "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 50ms requires feature gate CustomCPUCFSQuotaPeriod",
    ),
    (
        {"imageGCLowThresholdPercent": 85},
        "85 must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) 85",
    ),
    ({"imageMaximumGCAge": "-1s"}, "imageMaximumGCAge -1s must not be negative"),
    ({"imageMaximumGCAge": "1m"}, "imageMaximumGCAge 1m0s must be greater than imageMinimumGCAge"),
    ({"nodeLeaseDurationSeconds": 0}, "nodeLeaseDurationSeconds must be greater than 0"),
    ({"systemCgroups": "/s"}, "systemCgroups (--system-cgroups) is set and cgroupRoot (--cgroup-root) is not"),
    ({"nodeStatusMaxImages": -2}, "nodeStatusMaxImages (--node-status-max-images) -2 must be -1 or greater"),
    ({"maxParallelImagePulls": 0}, "maxParallelImagePulls 0 must be a positive number"),
    ({"maxParallelImagePulls": 2}, "needs SerializeImagePulls (--serialize-image-pulls) false"),
    ({"runOnce": True}, "runOnce (--runOnce) true"),
    ({"registerWithTaints": [{"key": "a/b/c", "effect": "NoSchedule"}]}, "invalid taint: a/b/c=:NoSchedule"),
    ({"registerWithTaints": [{"key": "a", "effect": "Never"}]}, "invalid taint: a=:Never"),
    ({"registerWithTaints": [{"key": "a", "timeAdded": "2026-01-01T00:00:00Z"}]}, "TimeAdded"),
    (
        {"topologyManagerPolicy": "best"},
        '"best" must be one of: "none", "best-effort", "restricted" or "single-numa-node"',
    ),
    ({"topologyManagerScope": "node"}, '"node" must be one of: "container" or "pod"'),
    ({"hairpinMode": "x"}, '"x" must be one of: "none", "hairpin-veth" or "promiscuous-bridge"'),
    ({"memorySwap": {"swapBehavior": "Much"}}, '"Much" must be one of'),
    (
        {"imagePullCredentialsVerificationPolicy": "NeverVerify"},
        "while feature gate KubeletEnsureSecretPulledImages is off",
    ),
    ({"preloadedImagesVerificationAllowlist": ["a/*"]}, "while feature gate KubeletEnsureSecretPulledImages is off"),
    ({"shutdownGracePeriodCriticalPods": "5s"}, "shutdownGracePeriodCriticalPods 5s must be <= shutdownGracePeriod 0s"),
    ({"shutdownGracePeriod": "500ms"}, "shutdownGracePeriod 500ms must be either zero or >= 1 sec"),
    (
        {"shutdownGracePeriod": "-1s", "shutdownGracePeriodCriticalPods": "-1s"},
        "shutdownGracePeriodCriticalPods -1s must be",
    ),
    (
        {"shutdownGracePeriod": "5s", "shutdownGracePeriodByPodPriority": [{"priority": 1}]},
        "cannot be set at the same time",
    ),
    ({"crashLoopBackOff": {"maxContainerRestartPeriod": "5s"}}, "while feature gate KubeletCrashLoopBackOffMax is off"),
    (
        {"enforceNodeAllocatable": ["kube-reserved", "kube-reserved-compressible"], "kubeReservedCgroup": "/k"},
        'both "kube-reserved" and',
    ),
    ({"enforceNodeAllocatable": ["pods", "pods"]}, 'duplicate entry "pods"'),
    ({"enforceNodeAllocatable": ["system-reserved"]}, "systemReservedCgroup (--system-reserved-cgroup) must be set"),
    (
        {"enforceNodeAllocatable": ["kube-reserved-compressible"]},
        "kubeReservedCgroup (--kube-reserved-cgroup) must be set",
    ),
    ({"enforceNodeAllocatable": ["none", "pods"]}, '"none" must stand alone'),
    (
        {"enforceNodeAllocatable": ["nodes"]},
        'option "nodes" of enforceNodeAllocatable (--enforce-node-allocatable) is unknown',
    ),
    ({"cgroupsPerQOS": False}, 'cgroupsPerQOS (--cgroups-per-qos) must be true while "pods"'),
    ({"reservedSystemCPUs": "0", "kubeReservedCgroup": "/k"}, "cannot be combined with systemReservedCgroup"),
    ({"reservedSystemCPUs": "3-1"}, "unable to parse reservedSystemCPUs (--reserved-cpus) 3-1"),
    ({"reservedSystemCPUs": "0-99999999"}, "unable to parse"),
    ({"reservedMemory": [{"limits": {"cpu": "1"}}]}, 'limit type "cpu" of NUMA node 0 is not supported'),
    ({"reservedMemory": [{"limits": {"memory": "0"}}]}, "must not be zero"),
    ({"reservedMemory": [{"limits": {"memory": "1"}}, {"limits": {"memory": "1"}}]}, "given twice"),
    ({"userNamespaces": {"idsPerPod": 65535}}, "must not be less than 65536"),
    ({"userNamespaces": {"idsPerPod": 65537}}, "must be a multiple of 65536"),
    ({"userNamespaces": {"idsPerPod": 65536 * 65536}}, "must not be more than 4294967295"),
    (
        {"showHiddenMetricsForVersion": "1.32"},
        "--show-hidden-metrics-for-version must be omitted or have the value '1.33'",
    ),
    ({"logging": {"format": "xml"}}, 'logging.format: Invalid value: "xml": Unsupported log format'),
    ({"logging": {"verbosity": 2**31}}, "logging.verbosity: Invalid value"),
    ({"logging": {"format": "json", "vmodule": [{"filePattern": "a"}]}}, "logging.vmodule: Forbidden"),
    ({"logging": {"vmodule": [{"verbosity": 1}]}}, "logging.vmodule[0]: Required value"),
    ({"logging": {"vmodule": [{"filePattern": "a=b"}]}}, "logging.vmodule[0]: Invalid value"),
    ({"logging": {"options": {"text": {"splitStream": True}, "json": {}}}}, "Feature LoggingAlphaOptions is disabled"),
    (
        {"logging": {"options": {"json": {"infoBufferSize": "1Ki"}, "text": {}}}},
        "logging.options.json.infoBufferSize: Forbidden",
    ),
    ({"tracing": {"endpoint": "http://a:1"}}, "tracing.endpoint: Invalid value"),
    ({"tracing": {"samplingRatePerMillion": -1}}, "tracing.samplingRatePerMillion: Invalid value: -1"),
    ({"tracing": {"samplingRatePerMillion": 1000001}}, "tracing.samplingRatePerMillion: Invalid value: 1000001"),
    ({"memoryThrottlingFactor": 0.0}, "memoryThrottlingFactor 0.0 must be above 0"),
    ({"memoryThrottlingFactor": 1.1}, "memoryThrottlingFactor 1.1"),
    ({"containerRuntimeEndpoint": ""}, "containerRuntimeEndpoint is empty"),
    ({"enableSystemLogQuery": True}, "NodeLogQuery feature gate is required for enableSystemLogHandler"),
    ({"containerLogMaxWorkers": 0}, "containerLogMaxWorkers must be 1 or greater"),
    ({"containerLogMonitorInterval": "2s"}, "containerLogMonitorInterval must be 3s or longer"),
    ({"containerLogMaxFiles": 1}, "containerLogMaxFiles must be greater than 1"),
    ({"podLogsDir": ""}, "podLogsDir is empty"),
    ({"podLogsDir": "logs"}, 'pod logs path "logs" must be absolute'),
    ({"podLogsDir": "/var/log/pods/"}, "must be normalized"),
    ({"podLogsDir": "/var/lög"}, "ASCII"),
]

BAD_AT_START: list[tuple[dict[str, Any], str]] = [
    ({"syncFrequency": "0s"}, "invalid sync frequency 0"),
    ({"syncFrequency": "-1s"}, "invalid sync frequency -1000000000"),
    ({"kubeAPIBurst": 0}, "kubeAPIBurst (--kube-api-burst) must be greater than 0"),
    ({"tlsMinVersion": "1.2"}, 'unknown tls version "1.2"'),
    ({"tlsCipherSuites": ["TLS_NONE"]}, "Cipher suite TLS_NONE not supported"),
    ({"authorization": {"mode": "RBAC"}}, "unknown authorization mode RBAC"),
    ({"configMapAndSecretChangeDetectionStrategy": "Push"}, 'unknown configmap and secret manager mode: "Push"'),
    ({"kubeReserved": {"cpu": "x"}}, '--kube-reserved value failed to parse: failed to parse quantity "x"'),
    ({"kubeReserved": {"gpu": "1"}}, '--kube-reserved value failed to parse: cannot reserve "gpu" resource'),
    ({"systemReserved": {"memory": "-1Gi"}}, "--system-reserved value failed to parse"),
    ({"qosReserved": {"cpu": "5%"}}, "--qos-reserved value failed to parse"),
    ({"qosReserved": {"memory": "50"}}, "want a whole number with %"),
    ({"qosReserved": {"memory": "101%"}}, "must be from 0% to 100%"),
    ({"evictionHard": {"memory.free": "1Gi"}}, "unsupported eviction signal memory.free"),
    ({"evictionHard": {"memory.available": "0"}}, "eviction threshold memory.available must be positive: 0"),
    ({"evictionHard": {"memory.available": "101%"}}, "must be 0% to 100%"),
    ({"evictionHard": {"memory.available": "-1%"}}, "must be 0% to 100%"),
    ({"evictionHard": {"memory.available": "x"}}, "is no quantity"),
    ({"evictionHard": {"memory.available": "nan%"}}, "is no number"),
    (
        {"evictionSoft": {"memory.available": "1Gi"}},
        "grace period must be specified for the soft eviction threshold memory.available",
    ),
    ({"evictionSoftGracePeriod": {"x": "1s"}}, "unsupported eviction signal x"),
    ({"evictionSoftGracePeriod": {"memory.available": "-1s"}}, "must not be negative"),
    ({"evictionSoftGracePeriod": {"memory.available": "5"}}, "is no duration"),
    ({"evictionMinimumReclaim": {"x": "1"}}, "unsupported eviction signal x"),
    ({"evictionMinimumReclaim": {"memory.available": "0%"}}, "must be positive"),
    (
        {"evictionMinimumReclaim": {"memory.available": "-1"}},
        "negative eviction minimum reclaim specified for memory.available",
    ),
    ({"cpuManagerPolicy": "dynamic"}, 'unknown policy: "dynamic"'),
    ({"cpuManagerPolicy": "static"}, "requires systemReserved.cpu + kubeReserved.cpu to be greater than zero"),
    ({POLICY_OPTIONS: {"full-pcpus-only": "true"}}, "none policy: no option is available"),
    (STATIC | {POLICY_OPTIONS: {"fast": "true"}}, 'unknown CPU Manager Policy option: "fast"'),
    (STATIC | {POLICY_OPTIONS: {"align-by-socket": "true"}}, "requires feature gate CPUManagerPolicyAlphaOptions"),
    (STATIC | {POLICY_OPTIONS: {"full-pcpus-only": "yes"}}, "want true or false"),
    (
        STATIC | {POLICY_OPTIONS: {"prefer-align-cpus-by-uncorecache": "1", "distribute-cpus-across-numa": "1"}},
        "exclude each other",
    ),
    (
        {"topologyManagerPolicy": "restricted", "topologyManagerPolicyOptions": {"x": "1"}},
        "unknown Topology Manager Policy option",
    ),
    (
        {"topologyManagerPolicy": "restricted", "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "7"}},
        "8 or more",
    ),
    (
        {"topologyManagerPolicy": "restricted", "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "x"}},
        "true or false",
    ),
    ({"memoryManagerPolicy": "static"}, 'unknown policy: "static"'),
    ({"memoryManagerPolicy": "BestEffort"}, "Windows only"),
    ({"memoryManagerPolicy": "Static"}, "requires reservedMemory"),
    ({"systemCgroups": "/", "cgroupRoot": "/"}, "cannot be root"),
    ({"containerLogMaxSize": "ten"}, 'container log max size "ten"'),
    ({"containerLogMaxSize": "0.5"}, 'container log max size "0.5"'),
    ({"allowedUnsafeSysctls": ["kernel.panic"]}, 'the sysctl "kernel.panic" is not known to be namespaced'),
    ({"allowedUnsafeSysctls": ["NET"]}, "must be a name of at most 253 characters"),
    ({"allowedUnsafeSysctls": ["net.*.x"]}, "or a prefix that ends in *"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=lambda value: str(value)[:80])
def test_a_broken_rule_of_the_object_says_so(change: dict[str, Any], message: str) -> None:
    told = [finding.message for finding in findings(change) if finding.step in (Step.VALIDATE, Step.LOGGING)]
    assert any(message in text for text in told), told


@pytest.mark.parametrize(("change", "message"), BAD_AT_START, ids=lambda value: str(value)[:80])
def test_a_broken_rule_of_the_start_says_so(change: dict[str, Any], message: str) -> None:
    told = [finding.message for finding in findings(change) if finding.step is Step.START]
    assert any(message in text for text in told), told


OTHERS = {
    # Rules that need a gate, the other cgroup version, no API server or the machine: tested below and in test_check.
    "serverTLSBootstrap",
    "singleProcessOOMKill",
    "failCgroupV1",
    "(main file)",
    "(drop-in)",
    "featureGates",
    "authentication.x509.clientCAFile",
    "cgroupDriver",
    "cgroupRoot",
    "logging.options",
    "enforceNodeAllocatable",
}


def test_every_field_with_a_message_upstream_has_a_case_here() -> None:
    covered = {path for change, _ in BAD + BAD_AT_START for path in _paths(change)}
    wanted = {name.strip() for row in DATA["messages"] for name in row["field"].split(",")}
    assert {name for name in wanted - OTHERS if not any(path.startswith(name) for path in covered)} == set()


def _paths(change: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in change.items():
        yield prefix + name
        if isinstance(value, dict):
            yield from _paths(value, f"{prefix}{name}.")


@pytest.mark.parametrize(
    ("change", "gates", "message"),
    [
        (
            {"serverTLSBootstrap": True},
            {"RotateKubeletServerCertificate": False},
            "requires feature gate RotateKubeletServer",
        ),
        ({"imageMaximumGCAge": "1h"}, {"ImageMaximumGCAge": False}, "requires feature gate ImageMaximumGCAge"),
        ({"cpuCFSQuotaPeriod": "2s"}, {"CustomCPUCFSQuotaPeriod": True}, "2s must be between 1ms and 1sec, inclusive"),
        ({"shutdownGracePeriod": "5s"}, {"GracefulNodeShutdown": False}, "require feature gate GracefulNodeShutdown"),
        (
            {"shutdownGracePeriodByPodPriority": [{}]},
            {"GracefulNodeShutdownBasedOnPodPriority": False},
            "requires feature gate",
        ),
        (
            {"crashLoopBackOff": {"maxContainerRestartPeriod": "301s"}},
            {"KubeletCrashLoopBackOffMax": True},
            "got: 301 seconds",
        ),
        ({"imagePullCredentialsVerificationPolicy": "x"}, {"KubeletEnsureSecretPulledImages": True}, 'option "x"'),
        (
            {"preloadedImagesVerificationAllowlist": ["a"]},
            {"KubeletEnsureSecretPulledImages": True},
            "VertificationPolicy",
        ),
        (
            {"enableSystemLogQuery": True, "enableSystemLogHandler": False},
            {"NodeLogQuery": True},
            "requires enableSystemLogHandler",
        ),
        ({"logging": {"format": "json"}}, {"LoggingBetaOptions": False}, "see LoggingBetaOptions feature"),
        (
            STATIC | {POLICY_OPTIONS: {"strict-cpu-reservation": "1"}},
            {"CPUManagerPolicyBetaOptions": False},
            "BetaOptions",
        ),
        (
            STATIC | {POLICY_OPTIONS: {"align-by-socket": "1"}, "topologyManagerPolicy": "single-numa-node"},
            {"CPUManagerPolicyAlphaOptions": True},
            "excludes topology manager policy",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_rule_follows_its_gate(change: dict[str, Any], gates: dict[str, bool], message: str) -> None:
    assert any(message in finding.message for finding in findings(change, gates=gates))


@pytest.mark.parametrize("pattern", [" a/b", "", "a*", "*/b", "a/*b", "/*", "a/b:tag", "a@sha256:0", "UPPER"])
def test_a_bad_image_pattern_is_told(pattern: str) -> None:
    change = {
        "imagePullCredentialsVerificationPolicy": "NeverVerifyAllowlistedImages",
        "preloadedImagesVerificationAllowlist": [pattern],
    }
    (finding,) = findings(change, gates={"KubeletEnsureSecretPulledImages": True})
    assert "invalid image pattern" in finding.message


@pytest.mark.parametrize(
    "change",
    [
        {"evictionHard": {"memory.available": "0%", "nodefs.available": "100%", "pid.available": "10"}},
        {"evictionSoft": {"memory.available": "5.5%"}, "evictionSoftGracePeriod": {"memory.available": "1m30s"}},
        {"evictionMinimumReclaim": {"nodefs.available": "0", "imagefs.available": "2Gi"}},
        {"healthzPort": 0},
        {"readOnlyPort": 10255},
        {"nodeStatusMaxImages": -1},
        {"oomScoreAdj": -1000},
        {"enforceNodeAllocatable": ["none"], "cgroupsPerQOS": False},
        {"enforceNodeAllocatable": []},
        {"reservedSystemCPUs": "0-3,8"},
        {"qosReserved": {"memory": "100%"}},
        {
            "reservedMemory": [
                {"limits": {"memory": "1Gi", "hugepages-2Mi": "4Mi"}},
                {"numaNode": 1, "limits": {"memory": "1"}},
            ]
        },
        {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"},
        {
            "allowedUnsafeSysctls": [
                "net.core.somaxconn",
                "kernel.shm*",
                "fs/mqueue/*",
                "net/ipv4/conf.x/forwarding",
                "net.*",
            ]
        },
        {"tracing": {"endpoint": "collector:4317"}},
        {"tracing": {"endpoint": "unix:///a"}},
        {"registerWithTaints": [{"key": "a.b/c", "value": "d"}]},
        {"containerLogMaxSize": "-1"},
        {"topologyManagerPolicyOptions": {"x": "y"}},
        {"maxParallelImagePulls": 5, "serializeImagePulls": False},
        STATIC | {POLICY_OPTIONS: {"full-pcpus-only": "true", "strict-cpu-reservation": "true"}},
        {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"},
        {"tlsCipherSuites": ["TLS_RSA_WITH_RC4_128_SHA"], "tlsMinVersion": "VersionTLS13"},
        {"userNamespaces": {"idsPerPod": 131072}},
        {"cgroupDriver": "whatever"},
        {"eventBurst": 0},
    ],
    ids=str,
)
def test_a_good_value_breaks_no_rule(change: dict[str, Any]) -> None:
    assert findings(change) == []


def test_only_the_first_problem_of_the_cgroup_version_is_told() -> None:
    # config-fields.md: "only the first problem of these three is reported"
    change = {"failCgroupV1": True, "singleProcessOOMKill": False, "userNamespaces": {"idsPerPod": 1}}
    (finding,) = findings(change, cgroup_v2=False)
    assert finding.message.startswith("kubelet is configured to not run on a host using cgroup v1")
    (finding,) = findings({"singleProcessOOMKill": False}, cgroup_v2=False)
    assert "singleProcessOOMKill" in finding.message
    assert findings({"failCgroupV1": True, "singleProcessOOMKill": False}) == []


def test_limited_swap_needs_cgroup_v2() -> None:
    assert len(findings({"memorySwap": {"swapBehavior": "LimitedSwap"}}, cgroup_v2=False)) == 1
    assert findings({"memorySwap": {"swapBehavior": "LimitedSwap"}}) == []


def test_a_standalone_node_may_have_any_change_detection() -> None:
    options = Options()
    change = {
        "configMapAndSecretChangeDetectionStrategy": "x",
        "authentication": {"webhook": {"enabled": False, "cacheTTL": "1s"}},
        "authorization": {"mode": "AlwaysAllow"},
    }
    assert findings(change, options=options) == []


@pytest.mark.parametrize(
    ("options", "step", "message"),
    [
        (
            Options(node_labels={"kubernetes.io/role": "x", "node.kubernetes.io/a": ""}),
            Step.FLAGS,
            "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [kubernetes.io/role]",
        ),
        (Options(node_labels={"a b": "c d"}), Step.FLAGS, "invalid node labels: 'a b'"),
        (
            Options(exit_on_lock_contention=True),
            Step.START,
            "cannot exit on lock file contention: no lock file specified",
        ),
        (
            Options(cloud_provider="aws"),
            Step.START,
            'cloud provider "aws" was specified, but built-in cloud providers are disabled',
        ),
        (Options(image_credential_provider_config="/c"), Step.START, "needs --image-credential-provider-bin-dir"),
        (Options(image_credential_provider_bin_dir="/b"), Step.START, "needs --image-credential-provider-config"),
        (Options(node_ip="1.1.1.1,2.2.2.2"), Step.START, 'bad --node-ip "1.1.1.1,2.2.2.2"'),
        (Options(node_ip="0.0.0.0,::1"), Step.START, 'bad --node-ip "0.0.0.0,::1"'),
    ],
    ids=str,
)
def test_a_broken_rule_of_the_flags_says_so(options: Options, step: Step, message: str) -> None:
    told = [finding for finding in findings({}, options=options) if finding.field.startswith("--")]
    assert [(finding.step, finding.message.startswith(message) or message in finding.message) for finding in told] == [
        (step, True)
    ]


@pytest.mark.parametrize(
    "options",
    [
        Options(kubeconfig="/k", node_labels={"kubernetes.io/arch": "x", "x.kubelet.kubernetes.io/a": "b", "c": ""}),
        Options(kubeconfig="/k", node_ip="1.1.1.1,fd00::1"),
        Options(kubeconfig="/k", node_ip="nonsense,::"),
        Options(kubeconfig="/k", lock_file="/l", exit_on_lock_contention=True),
        Options(kubeconfig="/k", cloud_provider="external"),
    ],
    ids=str,
)
def test_good_flags_break_no_rule(options: Options) -> None:
    assert findings({}, options=options) == []
