"""Security settings of pods and containers (core/v1 at v1.34)."""

from __future__ import annotations

from glasslet.api.object import Object


class AppArmorProfile(Object, frozen=True, kw_only=True):
    """`core/v1.AppArmorProfile`."""

    type: str = ""
    localhost_profile: str | None = None


class Capabilities(Object, frozen=True, kw_only=True):
    """`core/v1.Capabilities`."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class SELinuxOptions(Object, frozen=True, kw_only=True):
    """`core/v1.SELinuxOptions`."""

    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class SeccompProfile(Object, frozen=True, kw_only=True):
    """`core/v1.SeccompProfile`."""

    type: str = ""
    localhost_profile: str | None = None


class WindowsSecurityContextOptions(Object, frozen=True, kw_only=True):
    """`core/v1.WindowsSecurityContextOptions`."""

    gmsa_credential_spec_name: str | None = None
    gmsa_credential_spec: str | None = None
    run_as_user_name: str | None = None
    host_process: bool | None = None


class SecurityContext(Object, frozen=True, kw_only=True):
    """`core/v1.SecurityContext`."""

    capabilities: Capabilities | None = None
    privileged: bool | None = None
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    proc_mount: str | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None


class Sysctl(Object, frozen=True, kw_only=True):
    """`core/v1.Sysctl`."""

    name: str = ""
    value: str = ""


class PodSecurityContext(Object, frozen=True, kw_only=True):
    """`core/v1.PodSecurityContext`."""

    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    supplemental_groups: tuple[int, ...] = ()
    supplemental_groups_policy: str | None = None
    fs_group: int | None = None
    sysctls: tuple[Sysctl, ...] = ()
    fs_group_change_policy: str | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None
    se_linux_change_policy: str | None = None
