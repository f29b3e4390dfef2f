"""Settings of the command line that no configuration file has: identity, paths, the API server, old switches."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from glasslet.config.duration import Duration


class Options(Struct, frozen=True, kw_only=True):
    """Flags that are no part of KubeletConfiguration, with upstream's defaults. Empty text means not given."""

    config: str = ""
    config_dir: str = ""
    kubeconfig: str = ""
    """Given: cluster mode. Empty: standalone."""
    bootstrap_kubeconfig: str = ""
    root_dir: str = "/var/lib/kubelet"
    cert_dir: str = "/var/lib/kubelet/pki"
    hostname_override: str = ""
    node_ip: str = ""
    node_labels: dict[str, str] = {}
    cloud_provider: str = ""
    lock_file: str = ""
    exit_on_lock_contention: bool = False
    image_credential_provider_config: str = ""
    image_credential_provider_bin_dir: str = ""
    runtime_cgroups: str = ""
    housekeeping_interval: Duration = Duration.of_nanoseconds(10 * 10**9)
    experimental_mounter_path: str = ""
    experimental_allocatable_ignore_eviction: bool = False
    minimum_container_ttl_duration: Duration = Duration.of_nanoseconds(0)
    maximum_dead_containers: int = -1
    """Negative: no limit."""
    maximum_dead_containers_per_container: int = 1
    reported_version: str = ""
    """`--version=vX.Y.Z...`: the version to report instead of our own."""


def options_of(values: dict[str, Any]) -> Options:
    """Options from folded flag values (see flags.parse), keyed by flag name; other flags are passed over."""
    known = {name: values[flag] for name in Options.__struct_fields__ if (flag := name.replace("_", "-")) in values}
    for name in ("housekeeping_interval", "minimum_container_ttl_duration"):
        if name in known:
            known[name] = Duration.parse(known[name])
    version = values.get("version", "")
    return Options(**known, reported_version=version if version.startswith("v") else "")
