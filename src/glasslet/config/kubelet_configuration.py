"""KubeletConfiguration (kubelet.config.k8s.io/v1beta1, Kubernetes 1.34): every field, typed, with its default on Linux.

Names are Python's; the wire name follows from them (`tls_cert_file` is `tlsCertFile`, `cluster_dns` is `clusterDNS`).
Defaults are those of a start with a configuration file; `defaults.py` adds what depends on other fields and the four
legacy values of a start without one.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from glasslet.api.node import Taint
from glasslet.api.quantity import Quantity
from glasslet.config.duration import Duration

API_VERSION = "kubelet.config.k8s.io/v1beta1"
KIND = "KubeletConfiguration"

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
UInt32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]

_ACRONYMS = {
    "url": "URL", "tls": "TLS", "ca": "CA", "ttl": "TTL", "qps": "QPS", "dns": "DNS", "gc": "GC", "qos": "QOS",
    "oom": "OOM", "cidr": "CIDR", "cfs": "CFS", "api": "API", "iptables": "IPTables", "cpus": "CPUs", "id": "ID",
}  # fmt: skip


def wire_name(name: str) -> str:
    """The camelCase name of a field as upstream spells it."""
    first, *others = name.split("_")
    return first + "".join(_ACRONYMS.get(word, word.capitalize()) for word in others)


def seconds(value: float) -> Duration:
    """A duration of that many seconds."""
    return Duration.of_nanoseconds(round(value * 10**9))


class Section(Struct, frozen=True, kw_only=True, rename=wire_name):
    """The base of the object and of its parts."""


class X509Authentication(Section, frozen=True, kw_only=True):
    """`authentication.x509`."""

    client_ca_file: str = ""


class WebhookAuthentication(Section, frozen=True, kw_only=True):
    """`authentication.webhook`."""

    enabled: bool = True
    cache_ttl: Duration = seconds(120)


class AnonymousAuthentication(Section, frozen=True, kw_only=True):
    """`authentication.anonymous`."""

    enabled: bool = False


class Authentication(Section, frozen=True, kw_only=True):
    """`authentication`: the ways in which clients of the server are authenticated."""

    x509: X509Authentication = X509Authentication()
    webhook: WebhookAuthentication = WebhookAuthentication()
    anonymous: AnonymousAuthentication = AnonymousAuthentication()


class WebhookAuthorization(Section, frozen=True, kw_only=True):
    """`authorization.webhook`."""

    cache_authorized_ttl: Duration = seconds(300)
    cache_unauthorized_ttl: Duration = seconds(30)


class Authorization(Section, frozen=True, kw_only=True):
    """`authorization`: `mode` is AlwaysAllow or Webhook."""

    mode: str = "Webhook"
    webhook: WebhookAuthorization = WebhookAuthorization()


class MemorySwap(Section, frozen=True, kw_only=True):
    """`memorySwap`: empty acts as NoSwap."""

    swap_behavior: str = ""


class VModuleItem(Section, frozen=True, kw_only=True):
    """`logging.vmodule[]`."""

    file_pattern: str = ""
    verbosity: UInt32 = 0


class OutputRouting(Section, frozen=True, kw_only=True):
    """`logging.options.text` and `logging.options.json`."""

    split_stream: bool = False
    info_buffer_size: Quantity = Quantity(0)


class LoggingOptions(Section, frozen=True, kw_only=True):
    """`logging.options`."""

    text: OutputRouting = OutputRouting()
    json: OutputRouting = OutputRouting()


class Logging(Section, frozen=True, kw_only=True):
    """`logging`. A bare number for `flushFrequency` counts nanoseconds."""

    format: str = "text"
    flush_frequency: Duration = seconds(5)
    verbosity: UInt32 = 0
    vmodule: list[VModuleItem] = []
    options: LoggingOptions = LoggingOptions()


class ShutdownGracePeriod(Section, frozen=True, kw_only=True):
    """`shutdownGracePeriodByPodPriority[]`: seconds for the band of priorities from `priority` up."""

    priority: Int32 = 0
    shutdown_grace_period_seconds: Int64 = 0


class CrashLoopBackOff(Section, frozen=True, kw_only=True):
    """`crashLoopBackOff`."""

    max_container_restart_period: Duration | None = None


class MemoryReservation(Section, frozen=True, kw_only=True):
    """`reservedMemory[]`: amounts by type (`memory`, `hugepages-1Gi`) of one NUMA node."""

    numa_node: Int32 = 0
    limits: dict[str, Quantity] = {}


class Tracing(Section, frozen=True, kw_only=True):
    """`tracing`: no endpoint acts as localhost:4317, no rate keeps the parent's decision."""

    endpoint: str | None = None
    sampling_rate_per_million: Int32 | None = None


class UserNamespaces(Section, frozen=True, kw_only=True):
    """`userNamespaces`: null acts as 65536."""

    ids_per_pod: Int64 | None = None


class KubeletConfiguration(Section, frozen=True, kw_only=True):
    """The object. Durations are seconds (see Duration); empty text mostly means unset."""

    api_version: str = API_VERSION
    kind: str = KIND
    enable_server: bool = True
    static_pod_path: str = ""
    pod_logs_dir: str = "/var/log/pods"
    sync_frequency: Duration = seconds(60)
    file_check_frequency: Duration = seconds(20)
    http_check_frequency: Duration = seconds(20)
    static_pod_url: str = ""
    static_pod_url_header: dict[str, list[str]] = {}
    """Values may be secrets: never shown."""
    address: str = "0.0.0.0"
    port: Int32 = 10250
    read_only_port: Int32 = 0
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    tls_cipher_suites: list[str] = []
    tls_min_version: str = ""
    rotate_certificates: bool = False
    server_tls_bootstrap: bool = False
    authentication: Authentication = Authentication()
    authorization: Authorization = Authorization()
    registry_pull_qps: Int32 = 5
    registry_burst: Int32 = 10
    image_pull_credentials_verification_policy: str = ""
    preloaded_images_verification_allowlist: list[str] = []
    event_record_qps: Int32 = 50
    event_burst: Int32 = 100
    enable_debugging_handlers: bool = True
    enable_contention_profiling: bool = False
    healthz_port: Int32 = 10248
    healthz_bind_address: str = "127.0.0.1"
    oom_score_adj: Int32 = -999
    cluster_domain: str = ""
    cluster_dns: list[str] = []
    streaming_connection_idle_timeout: Duration = seconds(4 * 3600)
    node_status_update_frequency: Duration = seconds(10)
    node_status_report_frequency: Duration = seconds(300)
    node_lease_duration_seconds: Int32 = 40
    image_minimum_gc_age: Duration = seconds(120)
    image_maximum_gc_age: Duration = seconds(0)
    image_gc_high_threshold_percent: Int32 = 85
    image_gc_low_threshold_percent: Int32 = 80
    volume_stats_agg_period: Duration = seconds(60)
    kubelet_cgroups: str = ""
    system_cgroups: str = ""
    cgroup_root: str = ""
    cgroups_per_qos: bool = True
    cgroup_driver: str = "cgroupfs"
    cpu_manager_policy: str = "none"
    single_process_oom_kill: bool | None = None
    cpu_manager_policy_options: dict[str, str] = {}
    cpu_manager_reconcile_period: Duration = seconds(10)
    memory_manager_policy: str = "None"
    topology_manager_policy: str = "none"
    topology_manager_scope: str = "container"
    topology_manager_policy_options: dict[str, str] = {}
    qos_reserved: dict[str, str] = {}
    runtime_request_timeout: Duration = seconds(120)
    hairpin_mode: str = "promiscuous-bridge"
    max_pods: Int32 = 110
    pod_cidr: str = ""
    pod_pids_limit: Int64 = -1
    resolv_conf: str = "/etc/resolv.conf"
    run_once: bool = False
    cpu_cfs_quota: bool = True
    cpu_cfs_quota_period: Duration = seconds(0.1)
    node_status_max_images: Int32 = 50
    max_open_files: Int64 = 1_000_000
    content_type: str = "application/vnd.kubernetes.protobuf"
    kube_api_qps: Int32 = 50
    kube_api_burst: Int32 = 100
    serialize_image_pulls: bool = True
    max_parallel_image_pulls: Int32 | None = None
    eviction_hard: dict[str, str] = {}
    eviction_soft: dict[str, str] = {}
    eviction_soft_grace_period: dict[str, str] = {}
    eviction_pressure_transition_period: Duration = seconds(300)
    eviction_max_pod_grace_period: Int32 = 0
    eviction_minimum_reclaim: dict[str, str] = {}
    merge_default_eviction_settings: bool = False
    pods_per_core: Int32 = 0
    enable_controller_attach_detach: bool = True
    protect_kernel_defaults: bool = False
    make_iptables_util_chains: bool = True
    iptables_masquerade_bit: Int32 = 14
    iptables_drop_bit: Int32 = 15
    feature_gates: dict[str, bool] = {}
    """Overrides as given; `Loaded.gates` knows what is on."""
    fail_swap_on: bool = True
    memory_swap: MemorySwap = MemorySwap()
    container_log_max_size: str = "10Mi"
    container_log_max_files: Int32 = 5
    container_log_max_workers: Int32 = 1
    container_log_monitor_interval: Duration = seconds(10)
    config_map_and_secret_change_detection_strategy: str = "Watch"  # noqa: S105 - a mode, no secret
    system_reserved: dict[str, str] = {}
    kube_reserved: dict[str, str] = {}
    reserved_system_cpus: str = ""
    show_hidden_metrics_for_version: str = ""
    system_reserved_cgroup: str = ""
    kube_reserved_cgroup: str = ""
    enforce_node_allocatable: list[str] = field(default_factory=lambda: ["pods"])
    allowed_unsafe_sysctls: list[str] = []
    volume_plugin_dir: str = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"
    provider_id: str = ""
    kernel_memcg_notification: bool = False
    logging: Logging = Logging()
    enable_system_log_handler: bool = True
    enable_system_log_query: bool = False
    shutdown_grace_period: Duration = seconds(0)
    shutdown_grace_period_critical_pods: Duration = seconds(0)
    shutdown_grace_period_by_pod_priority: list[ShutdownGracePeriod] = []
    crash_loop_back_off: CrashLoopBackOff = CrashLoopBackOff()
    reserved_memory: list[MemoryReservation] = []
    enable_profiling_handler: bool = True
    enable_debug_flags_handler: bool = True
    seccomp_default: bool = False
    memory_throttling_factor: float = 0.9
    register_with_taints: list[Taint] = []
    register_node: bool = True
    tracing: Tracing | None = None
    local_storage_capacity_isolation: bool = True
    container_runtime_endpoint: str = "unix:///run/containerd/containerd.sock"
    image_service_endpoint: str = ""
    fail_cgroup_v1: bool = False
    user_namespaces: UserNamespaces | None = None


def to_plain(value: Any) -> Any:
    """Plain data as a configuration file would write it: durations in Go form, quantities as text."""
    import msgspec

    return msgspec.to_builtins(value, enc_hook=str)
