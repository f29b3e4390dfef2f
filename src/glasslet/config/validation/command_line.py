"""Rules about flags that are no fields of the configuration."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from glasslet.config.problem import Step
from glasslet.config.taint_syntax import label_value_problem, qualified_name_problem
from glasslet.config.validation.finding import Finding, ValidationInput, refused

_ALLOWED_LABELS = frozenset(
    {
        "beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type", "beta.kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone", "kubernetes.io/arch",
        "kubernetes.io/hostname", "kubernetes.io/os", "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region", "topology.kubernetes.io/zone",
    }
)  # fmt: skip
_ALLOWED_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")


def check_node_labels(subject: ValidationInput) -> Iterator[Finding]:
    """--node-labels: valid syntax, and no reserved key that a node may not give itself."""
    labels = subject.options.node_labels
    unknown = sorted(key for key in labels if _is_reserved(key) and not _may_label_itself(key))
    if unknown:
        text = (
            f"unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [{' '.join(unknown)}]\n"
            f"in the 'kubernetes.io' namespace they must begin with an allowed prefix "
            f"({', '.join(_ALLOWED_NAMESPACES)}) or be one of {', '.join(sorted(_ALLOWED_LABELS))}"
        )
        yield Finding("--node-labels", text, step=Step.FLAGS)
    bad = []
    for key, value in sorted(labels.items()):
        bad += [f"'{name}' - {reason}" for name, reason in (
            (key, qualified_name_problem(key)), (value, label_value_problem(value)),
        ) if reason]  # fmt: skip
    if bad:
        yield Finding("--node-labels", f"invalid node labels: {'; '.join(bad)}", step=Step.FLAGS)


def _is_reserved(key: str) -> bool:
    namespace, slash, _ = key.partition("/")
    return bool(slash) and any(namespace == top or namespace.endswith(f".{top}") for top in ("kubernetes.io", "k8s.io"))


def _may_label_itself(key: str) -> bool:
    namespace = key.partition("/")[0]
    return key in _ALLOWED_LABELS or any(
        namespace == allowed or namespace.endswith(f".{allowed}") for allowed in _ALLOWED_NAMESPACES
    )


def check_flags(subject: ValidationInput) -> Iterator[Finding]:
    """The other checks of flags, made by upstream while it starts."""
    options = subject.options
    if options.exit_on_lock_contention and not options.lock_file:
        text = "cannot exit on lock file contention: no lock file specified"
        yield refused("--exit-on-lock-contention", text, "give --lock-file")
    if options.cloud_provider not in ("", "external"):
        text = (
            f'cloud provider "{options.cloud_provider}" was specified, but built-in cloud providers are disabled, '
            "want --cloud-provider=external and an external provider"
        )
        yield refused("--cloud-provider", text, "external or empty")
    config, directory = options.image_credential_provider_config, options.image_credential_provider_bin_dir
    if bool(config) != bool(directory):
        missing = "--image-credential-provider-bin-dir" if config else "--image-credential-provider-config"
        given = "--image-credential-provider-config" if config else "--image-credential-provider-bin-dir"
        yield refused(given, f"{given} needs {missing}", "both or none")
    if reason := _node_ip_problem(options.node_ip):
        yield refused("--node-ip", f'bad --node-ip "{options.node_ip}": {reason}', "an address, or an IPv4 and an IPv6")


def _node_ip_problem(text: str) -> str:
    addresses = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            addresses.append(ipaddress.ip_address(part))
        except ValueError:
            # As upstream, what does not parse is passed over.
            continue
    if len(addresses) > 2 or len({address.version for address in addresses}) < len(addresses):
        return "must contain either a single IP or a dual-stack pair of IPs"
    if len(addresses) == 2 and any(address.is_unspecified for address in addresses):
        return "a dual-stack pair must not hold an unspecified address"
    return ""
