"""Flags of older years. The Go kubelet refuses to start with them; here a unit file from back then still starts.

The value is ignored, and one warning names the release that removed the flag and its replacement.
"""

from __future__ import annotations

from typing import NamedTuple


class RemovedFlag(NamedTuple):
    """`removed_in` is a release (`1.24`), empty if no release ever had the flag though documents name it."""

    name: str
    removed_in: str
    takes_value: bool
    replacement: str


_ROWS = (
    RemovedFlag("network-plugin", "1.24", True, "the runtime owns CNI"),
    RemovedFlag(
        "network-plugin-mtu", "1.24", True, "the runtime owns the network, set the MTU in its CNI configuration"
    ),
    RemovedFlag("network-plugin-dir", "1.9", True, "the runtime owns CNI, set the directory there"),
    RemovedFlag("cni-conf-dir", "1.24", True, "the runtime owns CNI, set the directory there"),
    RemovedFlag("cni-bin-dir", "1.24", True, "the runtime owns CNI, set the directory there"),
    RemovedFlag("cni-cache-dir", "1.24", True, "the runtime owns CNI, set the directory there"),
    RemovedFlag("non-masquerade-cidr", "1.24", True, "kubenet is gone, the CNI plugin masquerades"),
    RemovedFlag("docker-endpoint", "1.24", True, "dockershim is gone, use --container-runtime-endpoint"),
    RemovedFlag("docker", "1.24", True, "Docker is no longer read directly, the runtime answers through CRI"),
    RemovedFlag("docker-root", "1.24", True, "Docker is no longer read directly, the runtime answers through CRI"),
    RemovedFlag("docker-only", "1.24", False, "Docker is no longer read directly, the runtime answers through CRI"),
    RemovedFlag(
        "docker-env-metadata-whitelist",
        "1.24",
        True,
        "Docker is no longer read directly, the runtime answers through CRI",
    ),
    RemovedFlag("docker-tls", "1.24", False, "Docker is no longer read directly, the runtime answers through CRI"),
    RemovedFlag("docker-tls-ca", "1.24", True, "Docker is no longer read directly, the runtime answers through CRI"),
    RemovedFlag("docker-tls-cert", "1.24", True, "Docker is no longer read directly, the runtime answers through CRI"),
    RemovedFlag("docker-tls-key", "1.24", True, "Docker is no longer read directly, the runtime answers through CRI"),
    RemovedFlag("image-pull-progress-deadline", "1.24", True, "the runtime watches the progress of pulls itself"),
    RemovedFlag(
        "experimental-dockershim-root-directory", "1.24", True, "dockershim is gone, use --container-runtime-endpoint"
    ),
    RemovedFlag("experimental-dockershim", "1.24", False, "dockershim is gone, use --container-runtime-endpoint"),
    RemovedFlag("container-runtime", "1.27", True, "only remote runtimes exist, use --container-runtime-endpoint"),
    RemovedFlag("dynamic-config-dir", "1.24", True, "dynamic configuration is gone, use --config and --config-dir"),
    RemovedFlag("master-service-namespace", "1.27", True, "it had no effect"),
    RemovedFlag("experimental-bootstrap-kubeconfig", "1.16", True, "use --bootstrap-kubeconfig"),
    RemovedFlag("keep-terminated-pod-volumes", "1.31", False, "volumes of finished pods are always unmounted"),
    RemovedFlag("iptables-masquerade-bit", "1.31", True, "the kubelet no longer writes those rules"),
    RemovedFlag("iptables-drop-bit", "1.31", True, "the kubelet no longer writes those rules"),
    RemovedFlag("register-schedulable", "1.34", False, "use --register-with-taints"),
    RemovedFlag("cloud-config", "1.34", True, "built-in cloud providers are gone, use --cloud-provider=external"),
    RemovedFlag("allow-privileged", "1.15", False, "use pod security admission"),
    RemovedFlag("host-network-sources", "1.15", True, "use pod security admission"),
    RemovedFlag("host-pid-sources", "1.15", True, "use pod security admission"),
    RemovedFlag("host-ipc-sources", "1.15", True, "use pod security admission"),
    RemovedFlag("cadvisor-port", "1.12", True, "use /metrics/cadvisor of --port"),
    RemovedFlag("enable-cadvisor-json-endpoints", "1.21", False, "use /stats/summary"),
    RemovedFlag(
        "experimental-kernel-memcg-notification", "1.24", False, "use kernelMemcgNotification in the configuration file"
    ),
    RemovedFlag("experimental-check-node-capabilities-before-mount", "1.24", False, "use CSI drivers"),
    RemovedFlag(
        "experimental-allowed-unsafe-sysctls", "1.13", True, "use allowedUnsafeSysctls in the configuration file"
    ),
    RemovedFlag("experimental-qos-reserved", "1.11", True, "use qosReserved in the configuration file"),
    RemovedFlag("experimental-fail-swap-on", "1.9", False, "use failSwapOn in the configuration file"),
    RemovedFlag("experimental-logging-sanitization", "1.24", False, "nothing replaces it"),
    RemovedFlag("seccomp-profile-root", "1.24", True, "profiles are read from <root-dir>/seccomp"),
    RemovedFlag("redirect-container-streaming", "1.20", False, "streams always pass through the kubelet"),
    RemovedFlag("chaos-chance", "1.21", True, "nothing replaces it"),
    RemovedFlag("really-crash-for-testing", "1.21", False, "nothing replaces it"),
    RemovedFlag("api-servers", "1.8", True, "use --kubeconfig"),
    RemovedFlag("require-kubeconfig", "1.10", False, "use --kubeconfig"),
    RemovedFlag("auth-path", "1.5", True, "use --kubeconfig"),
    RemovedFlag("low-diskspace-threshold-mb", "1.9", True, "use evictionHard in the configuration file"),
    RemovedFlag("resource-container", "1.11", True, "use kubeletCgroups in the configuration file"),
    RemovedFlag("system-container", "1.11", True, "use systemCgroups in the configuration file"),
    RemovedFlag(
        "outofdisk-transition-frequency", "1.9", True, "use evictionPressureTransitionPeriod in the configuration file"
    ),
    RemovedFlag("babysit-daemons", "1.8", False, "use the service manager"),
    RemovedFlag("nosystemd", "1.7", False, "nothing replaces it"),
    RemovedFlag("log-dir", "1.26", True, "logs go to standard error only"),
    RemovedFlag("log-file", "1.26", True, "logs go to standard error only"),
    RemovedFlag("log-file-max-size", "1.26", True, "logs go to standard error only"),
    RemovedFlag("logtostderr", "1.26", False, "logs go to standard error only"),
    RemovedFlag("alsologtostderr", "1.26", False, "logs go to standard error only"),
    RemovedFlag("stderrthreshold", "1.26", True, "logs go to standard error only"),
    RemovedFlag("log-backtrace-at", "1.26", True, "logs go to standard error only"),
    RemovedFlag("skip-headers", "1.26", False, "logs go to standard error only"),
    RemovedFlag("skip-log-headers", "1.26", False, "logs go to standard error only"),
    RemovedFlag("add-dir-header", "1.26", False, "logs go to standard error only"),
    RemovedFlag("one-output", "1.26", False, "logs go to standard error only"),
    RemovedFlag("pleg-relist-period", "", True, "runtime events and a periodic relist need no setting"),
)

REMOVED: dict[str, RemovedFlag] = {row.name: row for row in _ROWS}


def warning_of(flag: RemovedFlag) -> str:
    """The line people see."""
    gone = f"was removed in v{flag.removed_in}" if flag.removed_in else "is no flag of this kubelet"
    return f"Flag --{flag.name} {gone} and has no effect: {flag.replacement}"
