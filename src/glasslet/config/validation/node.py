"""Rules about the node: taints, certificates, cgroup version, user namespaces, sysctls, log size."""

from __future__ import annotations

import re
from collections.abc import Iterator

from glasslet.api.quantity import Quantity
from glasslet.config.taint_syntax import EFFECTS, label_value_problem, qualified_name_problem
from glasslet.config.validation.finding import Finding, ValidationInput, invalid, refused

_IDS = 65536
_SYSCTL = re.compile(
    r"(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*(?:[a-z0-9][-_a-z0-9]*)?[a-z0-9*]", re.ASCII
)  # a name, or a prefix that ends in *
_NAMESPACED = frozenset(
    {
        "kernel.sem", "kernel.shm", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced",
        "kernel.msg", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni",
    }
)  # fmt: skip


def check_taints(subject: ValidationInput) -> Iterator[Finding]:
    """registerWithTaints: valid keys, values and effects; no time."""
    for index, taint in enumerate(subject.configuration.register_with_taints):
        field = f"registerWithTaints[{index}]"
        bad_effect = taint.effect and taint.effect not in EFFECTS
        if bad_effect or qualified_name_problem(taint.key) or label_value_problem(taint.value):
            shown = f"{taint.key}={taint.value}:{taint.effect}"
            yield Finding(field, f"invalid taint: {shown}", f"key=value:effect, effect one of {', '.join(EFFECTS)}")
        if taint.time_added is not None:
            yield invalid(field, "taint.TimeAdded must not be set", "unset")


def check_serving_certificate(subject: ValidationInput) -> Iterator[Finding]:
    """serverTLSBootstrap needs its gate."""
    if subject.configuration.server_tls_bootstrap and not subject.gates.enabled("RotateKubeletServerCertificate"):
        text = "serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate"
        yield invalid("serverTLSBootstrap", text, "false")


def check_machine_version(subject: ValidationInput) -> Iterator[Finding]:
    """Fields that depend on the cgroup version; as upstream, only the first problem is reported."""
    configuration = subject.configuration
    if configuration.fail_cgroup_v1 and not subject.cgroup_v2:
        text = "kubelet is configured to not run on a host using cgroup v1 (failCgroupV1), which this host does"
        yield Finding("failCgroupV1", text, "false, or a host with cgroup v2")
        return
    if configuration.single_process_oom_kill is False and not subject.cgroup_v2:
        text = "singleProcessOOMKill must not be false on cgroup v1"
        yield invalid("singleProcessOOMKill", text, "true or unset")
        return
    ids = configuration.user_namespaces.ids_per_pod if configuration.user_namespaces else None
    if ids is None:
        return
    field = "userNamespaces.idsPerPod"
    if ids < _IDS:
        yield invalid(field, f"{field} {ids} must not be less than {_IDS}", f"a multiple of {_IDS}")
    elif ids % _IDS:
        yield invalid(field, f"{field} {ids} must be a multiple of {_IDS}", f"a multiple of {_IDS}")
    elif ids > 2**32 - 1:
        yield invalid(field, f"{field} {ids} must not be more than {2**32 - 1}", f"a multiple of {_IDS}")


def check_swap_limit(subject: ValidationInput) -> Iterator[Finding]:
    """LimitedSwap exists on cgroup v2 only."""
    if subject.configuration.memory_swap.swap_behavior == "LimitedSwap" and not subject.cgroup_v2:
        text = "memorySwap.swapBehavior LimitedSwap is supported with cgroup v2 only"
        yield refused("memorySwap.swapBehavior", text, "NoSwap")


def check_log_size(subject: ValidationInput) -> Iterator[Finding]:
    """containerLogMaxSize: a whole quantity."""
    text = subject.configuration.container_log_max_size
    try:
        good = Quantity.parse(text).nano_value() % 10**9 == 0
    except ValueError:
        good = False
    if not good:
        message = f'failed to parse container log max size "{text[:100]}", want a whole quantity such as 10Mi'
        yield refused("containerLogMaxSize", message, "a quantity such as 10Mi")


def check_sysctls(subject: ValidationInput) -> Iterator[Finding]:
    """allowedUnsafeSysctls: names, or prefixes with *, of namespaced sysctls."""
    for index, pattern in enumerate(subject.configuration.allowed_unsafe_sysctls):
        field = f"allowedUnsafeSysctls[{index}]"
        if len(pattern) > 253 or not _SYSCTL.fullmatch(pattern) or "*" in pattern[:-1]:
            text = f'sysctl "{pattern[:253]}" must be a name of at most 253 characters, or a prefix that ends in *'
            yield refused(field, text)
            continue
        name = _dotted(pattern).removesuffix("*")
        if name not in _NAMESPACED and not name.startswith(("net.", "fs.mqueue.")):
            yield refused(
                field, f'the sysctl "{name}" is not known to be namespaced', "net.*, fs.mqueue.*, kernel.shm*"
            )


def _dotted(name: str) -> str:
    """The form with dots as separators: a name whose first separator is a slash has the two roles swapped."""
    first = re.search(r"[./]", name)
    return name.translate(str.maketrans("./", "/.")) if first and first[0] == "/" else name
