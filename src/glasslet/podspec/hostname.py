"""The host name of a pod."""

from __future__ import annotations

import re
from typing import NamedTuple

from glasslet.api.formats import dns_subdomain_problems
from glasslet.api.pod import Pod
from glasslet.podspec.errors import ConfigError, sandbox_error

MAX_HOSTNAME = 63
MAX_FQDN = 64

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


class PodHostname(NamedTuple):
    """`domain` is empty unless the pod has a subdomain."""

    name: str
    domain: str


def pod_hostname(pod: Pod, cluster_domain: str) -> PodHostname:
    """Host name and domain, as /etc/hosts has them. Raises ConfigError for names that are no DNS labels."""
    spec = pod.spec
    if spec.hostname_override is not None:
        return PodHostname(_not_empty(_cut(_subdomain(spec.hostname_override)), spec.hostname_override, pod), "")
    name = _cut(_label(spec.hostname, "Hostname") if spec.hostname else pod.metadata.name)
    _not_empty(name, spec.hostname or pod.metadata.name, pod)
    if not spec.subdomain:
        return PodHostname(name, "")
    subdomain = _label(spec.subdomain, "Subdomain")
    return PodHostname(name, f"{subdomain}.{pod.metadata.namespace}.svc.{cluster_domain}")


def kernel_hostname(pod: Pod, cluster_domain: str) -> str:
    """The name that `hostname` prints inside the pod: short, or full with setHostnameAsFQDN. Raises ConfigError
    when the full name exceeds what the kernel takes."""
    name, domain = pod_hostname(pod, cluster_domain)
    if not domain or not pod.spec.set_hostname_as_fqdn:
        return name
    fqdn = f"{name}.{domain}"
    if len(fqdn) > MAX_FQDN:
        raise sandbox_error(
            f"failed to construct FQDN from pod hostname and cluster domain, FQDN {fqdn} is too long "
            f"({MAX_FQDN} characters is the max, {len(fqdn)} characters requested)"
        )
    return fqdn


def _not_empty(name: str, written: str, pod: Pod) -> str:
    if not name:
        raise sandbox_error(f'hostname for pod "{pod.metadata.name}" was invalid: "{written}"')
    return name


def _subdomain(value: str) -> str:
    if problems := dns_subdomain_problems(value):
        raise sandbox_error(f'pod HostnameOverride "{value}" is not a valid DNS subdomain: {";".join(problems)}')
    return value


def _cut(name: str) -> str:
    return name if len(name) <= MAX_HOSTNAME else name[:MAX_HOSTNAME].rstrip("-.")


def _label(value: str, field: str) -> str:
    problems = []
    if len(value) > MAX_HOSTNAME:
        problems.append(f"must be no more than {MAX_HOSTNAME} characters")
    if not _LABEL.fullmatch(value):
        problems.append(_LABEL_RULE)
    if problems:
        raise _invalid(field, value, problems)
    return value


def _invalid(field: str, value: str, problems: list[str]) -> ConfigError:
    return sandbox_error(f'pod {field} "{value}" is not a valid DNS label: {";".join(problems)}')
