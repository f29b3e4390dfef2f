"""Every flag of the 1.34 kubelet: type, default, the configuration field it mirrors, and what it means.

Kept free of heavy imports: `kubelet --help` reads nothing else. An empty default is the type's empty value; an empty
field marks a flag that is no part of KubeletConfiguration.
"""

from __future__ import annotations

from typing import NamedTuple


class Flag(NamedTuple):
    """One flag. `kind` names its syntax (see flag_values), `field` is a wire path such as `authorization.mode`."""

    name: str
    kind: str
    default: str
    field: str
    meaning: str


CONFIG_FILE = "set it in the configuration file of --config instead"
_EVICTION = "use --eviction-hard or --eviction-soft instead"
_CADVISOR = "it belongs to cAdvisor, was registered by mistake and has no effect here"
WINDOWS_ONLY = frozenset({"windows-service", "windows-priorityclass"})
_CURRENT_FIELDS = frozenset({"v", "vmodule", "log-flush-frequency", "provider-id", "fail-cgroupv1", "seccomp-default"})
_DEPRECATED_OTHERS = {
    "minimum-container-ttl-duration": _EVICTION,
    "maximum-dead-containers": _EVICTION,
    "maximum-dead-containers-per-container": _EVICTION,
    "experimental-mounter-path": "it will be removed in 1.25 or later, use CSI instead",
    "experimental-allocatable-ignore-eviction": "it will be removed in 1.25 or later",
    "pod-infra-container-image": "it will be removed in 1.35, the runtime names the pause image",
}
CADVISOR_GROUP = "cAdvisor, accepted without effect"

# fmt: off
GROUPS: dict[str, tuple[Flag, ...]] = {
    "Start": (
        Flag("config", "string", "", "", "Path of the configuration file"),
        Flag("config-dir", "string", "", "", "Directory of *.conf drop-ins, sub-directories included"),
        Flag("kubeconfig", "string", "", "", "API server access; absent = standalone mode"),
        Flag("bootstrap-kubeconfig", "string", "", "",
             "Kubeconfig used to request the first client certificate if the --kubeconfig file does not exist"),
        Flag("root-dir", "string", "/var/lib/kubelet", "", "State directory"),
        Flag("cert-dir", "string", "/var/lib/kubelet/pki", "",
             "Certificate directory; unused for serving if both TLS files are given"),
        Flag("hostname-override", "string", "", "", "Node name instead of the host name (lower-cased, trimmed)"),
        Flag("node-ip", "string", "", "", "Node address or dual-stack pair; '::' or '0.0.0.0' only picks the family"),
        Flag("node-labels", "labels", "", "",
             "Labels at registration; kubernetes.io and k8s.io keys only from the allowed set or under "
             "kubelet.kubernetes.io / node.kubernetes.io"),
        Flag("cloud-provider", "string", "", "", "\"\" or \"external\"; anything else is refused"),
        Flag("provider-id", "string", "", "providerID", "Provider id of the node"),
        Flag("lock-file", "string", "", "", "Lock file path (alpha)"),
        Flag("exit-on-lock-contention", "bool", "false", "",
             "Exit when another process opens or deletes the lock file; needs --lock-file"),
        Flag("feature-gates", "gates", "", "featureGates",
             "Feature gates; merged with the file per gate, the flag wins"),
        Flag("help", "bool", "false", "", "Help on stdout (-h)"),
        Flag("version", "version", "false", "",
             "true: print the version and exit; raw: print all fields and exit; vX.Y.Z...: report this version "
             "instead and go on"),
        Flag("runonce", "bool", "false", "runOnce", "Former one-shot mode"),
        Flag("windows-service", "bool", "false", "", "Run as a Windows service"),
        Flag("windows-priorityclass", "string", "NORMAL_PRIORITY_CLASS", "", "Process priority class"),
    ),
    "Logging": (
        Flag("v", "level", "0", "logging.verbosity", "Verbosity (-v)"),
        Flag("vmodule", "vmodule", "", "logging.vmodule", "Per-file verbosity, text only"),
        Flag("log-flush-frequency", "duration", "5s", "logging.flushFrequency", "Longest time between flushes"),
        Flag("logging-format", "string", "text", "logging.format",
             "text or json (json needs gate LoggingBetaOptions, on)"),
        Flag("log-text-split-stream", "bool", "false", "logging.options.text.splitStream",
             "Text split streams (alpha)"),
        Flag("log-text-info-buffer-size", "quantity", "0", "logging.options.text.infoBufferSize",
             "Text info buffer (alpha)"),
        Flag("log-json-split-stream", "bool", "false", "logging.options.json.splitStream",
             "JSON split streams (alpha)"),
        Flag("log-json-info-buffer-size", "quantity", "0", "logging.options.json.infoBufferSize",
             "JSON info buffer (alpha)"),
    ),
    "Server": (
        Flag("enable-server", "bool", "true", "enableServer", "Serve the API"),
        Flag("address", "ip", "0.0.0.0", "address", "Listen address of the HTTPS API"),
        Flag("port", "int32", "10250", "port", "HTTPS port"),
        Flag("read-only-port", "int32", "10255", "readOnlyPort", "Read-only port"),
        Flag("healthz-port", "int32", "10248", "healthzPort", "Health port, 0 = off"),
        Flag("healthz-bind-address", "ip", "127.0.0.1", "healthzBindAddress", "Health listen address"),
        Flag("enable-debugging-handlers", "bool", "true", "enableDebuggingHandlers", "Log, exec and run endpoints"),
        Flag("contention-profiling", "bool", "false", "enableContentionProfiling", "Block profiling"),
        Flag("tls-cert-file", "string", "", "tlsCertFile", "Serving certificate"),
        Flag("tls-private-key-file", "string", "", "tlsPrivateKeyFile", "Serving key"),
        Flag("tls-cipher-suites", "strings", "", "tlsCipherSuites", "Cipher suites"),
        Flag("tls-min-version", "string", "", "tlsMinVersion", "VersionTLS10..VersionTLS13"),
        Flag("rotate-certificates", "bool", "false", "rotateCertificates", "Client certificate rotation"),
        Flag("rotate-server-certificates", "bool", "false", "serverTLSBootstrap", "Serving certificate through CSRs"),
        Flag("client-ca-file", "string", "", "authentication.x509.clientCAFile", "CA bundle for client certificates"),
        Flag("anonymous-auth", "bool", "true", "authentication.anonymous.enabled", "Anonymous requests"),
        Flag("authentication-token-webhook", "bool", "false", "authentication.webhook.enabled",
             "TokenReview authentication"),
        Flag("authentication-token-webhook-cache-ttl", "duration", "2m0s", "authentication.webhook.cacheTTL",
             "TokenReview cache time"),
        Flag("authorization-mode", "string", "AlwaysAllow", "authorization.mode", "AlwaysAllow or Webhook"),
        Flag("authorization-webhook-cache-authorized-ttl", "duration", "5m0s",
             "authorization.webhook.cacheAuthorizedTTL",
             "Cache time of allow answers"),
        Flag("authorization-webhook-cache-unauthorized-ttl", "duration", "30s",
             "authorization.webhook.cacheUnauthorizedTTL",
             "Cache time of deny answers"),
        Flag("streaming-connection-idle-timeout", "duration", "4h0m0s", "streamingConnectionIdleTimeout", "No effect"),
    ),
    "API server and node": (
        Flag("kube-api-qps", "int32", "50", "kubeAPIQPS", "API client rate"),
        Flag("kube-api-burst", "int32", "100", "kubeAPIBurst", "API client burst"),
        Flag("kube-api-content-type", "string", "application/vnd.kubernetes.protobuf", "contentType",
             "API content type"),
        Flag("event-qps", "int32", "50", "eventRecordQPS", "Event rate"),
        Flag("event-burst", "int32", "100", "eventBurst", "Event burst"),
        Flag("register-node", "bool", "true", "registerNode", "Create the Node"),
        Flag("register-with-taints", "taints", "", "registerWithTaints", "key=value:effect, comma separated"),
        Flag("node-status-update-frequency", "duration", "10s", "nodeStatusUpdateFrequency", "Node status period"),
        Flag("node-status-max-images", "int32", "50", "nodeStatusMaxImages", "Images in node status"),
        Flag("pod-cidr", "string", "", "podCIDR", "Pod range in standalone mode"),
        Flag("enable-controller-attach-detach", "bool", "true", "enableControllerAttachDetach",
             "Attach/detach left to the controller manager"),
    ),
    "Static pods": (
        Flag("pod-manifest-path", "string", "", "staticPodPath",
             "Static pod path; names starting with a dot are skipped"),
        Flag("file-check-frequency", "duration", "20s", "fileCheckFrequency", "Manifest rescan period"),
        Flag("manifest-url", "string", "", "staticPodURL", "Manifest URL"),
        Flag("manifest-url-header", "headers", "", "staticPodURLHeader",
             "Headers name:value, comma separated, repeatable"),
        Flag("http-check-frequency", "duration", "20s", "httpCheckFrequency", "Manifest URL poll period"),
        Flag("sync-frequency", "duration", "1m0s", "syncFrequency", "Sync period"),
    ),
    "Runtime, images and containers": (
        Flag("container-runtime-endpoint", "string", "unix:///run/containerd/containerd.sock",
             "containerRuntimeEndpoint",
             "CRI runtime endpoint"),
        Flag("image-service-endpoint", "string", "", "imageServiceEndpoint", "CRI image endpoint"),
        Flag("runtime-request-timeout", "duration", "2m0s", "runtimeRequestTimeout", "CRI call limit"),
        Flag("runtime-cgroups", "string", "", "", "Cgroup of the container runtime, for its stats"),
        Flag("registry-qps", "int32", "5", "registryPullQPS", "Registry rate"),
        Flag("registry-burst", "int32", "10", "registryBurst", "Registry burst"),
        Flag("serialize-image-pulls", "bool", "true", "serializeImagePulls", "One pull at a time"),
        Flag("image-credential-provider-config", "string", "", "",
             "Credential provider config: a file (json/yaml/yml) or a directory of them merged in name order"),
        Flag("image-credential-provider-bin-dir", "string", "", "",
             "Directory of credential provider binaries; needed with the next flag"),
        Flag("image-gc-high-threshold", "int32", "85", "imageGCHighThresholdPercent", "Image GC start, percent"),
        Flag("image-gc-low-threshold", "int32", "80", "imageGCLowThresholdPercent", "Image GC goal, percent"),
        Flag("minimum-image-ttl-duration", "duration", "2m0s", "imageMinimumGCAge",
             "Age before an unused image may go"),
        Flag("pod-infra-container-image", "string", "", "",
             "Formerly the pause image kept from image GC; value is ignored"),
        Flag("container-log-max-size", "string", "10Mi", "containerLogMaxSize", "Log size before rotation"),
        Flag("container-log-max-files", "int32", "5", "containerLogMaxFiles", "Log files per container (>= 2)"),
        Flag("maximum-dead-containers", "int32", "-1", "", "Dead containers kept on the node; negative = no limit"),
        Flag("maximum-dead-containers-per-container", "int32", "1", "", "Dead instances kept per container"),
        Flag("minimum-container-ttl-duration", "duration", "0s", "", "Age before a dead container may go"),
        Flag("seccomp-default", "bool", "false", "seccompDefault", "RuntimeDefault seccomp everywhere"),
        Flag("allowed-unsafe-sysctls", "strings", "", "allowedUnsafeSysctls", "Unsafe sysctls pods may use"),
        Flag("cluster-dns", "strings", "", "clusterDNS", "Cluster DNS servers"),
        Flag("cluster-domain", "string", "", "clusterDomain", "Cluster DNS domain"),
        Flag("resolv-conf", "string", "/etc/resolv.conf", "resolvConf", "Resolver file"),
        Flag("hairpin-mode", "string", "promiscuous-bridge", "hairpinMode",
             "Hairpin mode; validated, otherwise unused"),
        Flag("make-iptables-util-chains", "bool", "true", "makeIPTablesUtilChains", "Create the hint chain"),
        Flag("volume-plugin-dir", "string", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/", "volumePluginDir",
             "FlexVolume directory"),
        Flag("volume-stats-agg-period", "duration", "1m0s", "volumeStatsAggPeriod",
             "Volume statistics period; negative = off"),
        Flag("experimental-mounter-path", "string", "", "", "Own mount binary"),
    ),
    "Resources and eviction": (
        Flag("cgroup-driver", "string", "cgroupfs", "cgroupDriver", "cgroupfs or systemd"),
        Flag("cgroup-root", "string", "", "cgroupRoot", "Root cgroup of pods"),
        Flag("cgroups-per-qos", "bool", "true", "cgroupsPerQOS", "QoS cgroup hierarchy"),
        Flag("cpu-cfs-quota", "bool", "true", "cpuCFSQuota", "CFS quota for CPU limits"),
        Flag("cpu-cfs-quota-period", "duration", "100ms", "cpuCFSQuotaPeriod", "CFS period"),
        Flag("cpu-manager-policy", "string", "none", "cpuManagerPolicy", "none or static"),
        Flag("cpu-manager-policy-options", "map-entry", "", "cpuManagerPolicyOptions", "Static policy options"),
        Flag("cpu-manager-reconcile-period", "duration", "10s", "cpuManagerReconcilePeriod",
             "CPU manager reconcile period"),
        Flag("enforce-node-allocatable", "strings", "pods", "enforceNodeAllocatable",
             "Reservations enforced by cgroups"),
        Flag("eviction-hard", "thresholds", "", "evictionHard", "Hard thresholds, e.g. memory.available<1Gi"),
        Flag("eviction-max-pod-grace-period", "int32", "0", "evictionMaxPodGracePeriod",
             "Grace cap for soft evictions"),
        Flag("eviction-minimum-reclaim", "map", "", "evictionMinimumReclaim", "Minimum reclaim per signal"),
        Flag("eviction-pressure-transition-period", "duration", "5m0s", "evictionPressureTransitionPeriod",
             "Wait before leaving a pressure condition"),
        Flag("eviction-soft", "thresholds", "", "evictionSoft", "Soft thresholds"),
        Flag("eviction-soft-grace-period", "map", "", "evictionSoftGracePeriod", "Grace per soft threshold"),
        Flag("experimental-allocatable-ignore-eviction", "bool", "false", "",
             "Leave hard eviction out of node allocatable"),
        Flag("fail-cgroupv1", "bool", "false", "failCgroupV1", "Refuse to start on cgroup v1"),
        Flag("fail-swap-on", "bool", "true", "failSwapOn", "Refuse to start with swap on"),
        Flag("kernel-memcg-notification", "bool", "false", "kernelMemcgNotification",
             "Memcg notifications for eviction"),
        Flag("kube-reserved", "map", "", "kubeReserved", "Kubernetes reservation"),
        Flag("kube-reserved-cgroup", "string", "", "kubeReservedCgroup", "Cgroup for it"),
        Flag("kubelet-cgroups", "string", "", "kubeletCgroups", "Cgroup of the kubelet"),
        Flag("local-storage-capacity-isolation", "bool", "true", "localStorageCapacityIsolation",
             "Local ephemeral storage isolation"),
        Flag("max-open-files", "int64", "1000000", "maxOpenFiles", "File limit"),
        Flag("max-pods", "int32", "110", "maxPods", "Pod limit"),
        Flag("memory-manager-policy", "string", "None", "memoryManagerPolicy", "None or Static"),
        Flag("oom-score-adj", "int32", "-999", "oomScoreAdj", "oom_score_adj of the kubelet"),
        Flag("pod-max-pids", "int64", "-1", "podPidsLimit", "Process limit per pod"),
        Flag("pods-per-core", "int32", "0", "podsPerCore", "Pods per core"),
        Flag("protect-kernel-defaults", "bool", "false", "protectKernelDefaults", "Fail on differing kernel tunables"),
        Flag("qos-reserved", "map", "", "qosReserved", "QoS reservation (alpha)"),
        Flag("reserved-cpus", "string", "", "reservedSystemCPUs", "CPU list for the system"),
        Flag("reserved-memory", "reserved-memory", "", "reservedMemory",
             "node:type=amount,...; nodes separated by ; or by repeating the flag"),
        Flag("system-cgroups", "string", "", "systemCgroups", "Cgroup for other processes"),
        Flag("system-reserved", "map", "", "systemReserved", "OS reservation"),
        Flag("system-reserved-cgroup", "string", "", "systemReservedCgroup", "Cgroup for it"),
        Flag("topology-manager-policy", "string", "none", "topologyManagerPolicy", "Topology policy"),
        Flag("topology-manager-policy-options", "map", "", "topologyManagerPolicyOptions", "Topology options"),
        Flag("topology-manager-scope", "string", "container", "topologyManagerScope", "container or pod"),
        Flag("housekeeping-interval", "duration", "10s", "", "Period between cAdvisor housekeepings"),
    ),
    "cAdvisor, accepted without effect": (
        Flag("application-metrics-count-limit", "int", "100", "", "cAdvisor application metric limit"),
        Flag("boot-id-file", "string", "/proc/sys/kernel/random/boot_id", "", "Boot id files"),
        Flag("container-hints", "string", "/etc/cadvisor/container_hints.json", "", "Container hints file"),
        Flag("containerd", "string", "/run/containerd/containerd.sock", "", "containerd socket of cAdvisor"),
        Flag("containerd-namespace", "string", "k8s.io", "", "containerd namespace"),
        Flag("enable-load-reader", "bool", "false", "", "CPU load reader"),
        Flag("event-storage-age-limit", "string", "default=0", "", "Event age limit"),
        Flag("event-storage-event-limit", "string", "default=0", "", "Event count limit"),
        Flag("global-housekeeping-interval", "duration", "1m0s", "", "Global housekeeping period"),
        Flag("log-cadvisor-usage", "bool", "false", "", "Log cAdvisor's own usage"),
        Flag("machine-id-file", "string", "/etc/machine-id,/var/lib/dbus/machine-id", "", "Machine id files"),
        Flag("storage-driver-user", "string", "root", "", "Storage driver user"),
        Flag("storage-driver-password", "string", "root", "", "Storage driver password"),
        Flag("storage-driver-host", "string", "localhost:8086", "", "Storage driver host"),
        Flag("storage-driver-db", "string", "cadvisor", "", "Storage driver database"),
        Flag("storage-driver-table", "string", "stats", "", "Storage driver table"),
        Flag("storage-driver-secure", "bool", "false", "", "Storage driver TLS"),
        Flag("storage-driver-buffer-duration", "duration", "1m0s", "", "Storage driver buffer"),
    ),
}
# fmt: on

FLAGS: dict[str, Flag] = {flag.name: flag for group in GROUPS.values() for flag in group}


def deprecation(flag: Flag) -> str:
    """The replacement of the flag; empty for flags that are not deprecated."""
    if flag.name in _DEPRECATED_OTHERS:
        return _DEPRECATED_OTHERS[flag.name]
    if flag in GROUPS[CADVISOR_GROUP]:
        return _CADVISOR
    return CONFIG_FILE if flag.field and flag.name not in _CURRENT_FIELDS else ""
