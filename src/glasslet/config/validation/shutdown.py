"""Rules about graceful node shutdown and restart back-off."""

from __future__ import annotations

from collections.abc import Iterator

from glasslet.config.validation.finding import Finding, ValidationInput, invalid


def check_shutdown(subject: ValidationInput) -> Iterator[Finding]:
    """Shutdown periods: bounds, order, gates, and one way of giving them."""
    configuration, gates = subject.configuration, subject.gates
    whole, critical = configuration.shutdown_grace_period, configuration.shutdown_grace_period_critical_pods
    if gates.enabled("GracefulNodeShutdown"):
        if critical > whole:
            text = f"shutdownGracePeriodCriticalPods {critical} must be <= shutdownGracePeriod {whole}"
            yield invalid("shutdownGracePeriodCriticalPods", text, f"at most {whole}")
        for field, value in (("shutdownGracePeriod", whole), ("shutdownGracePeriodCriticalPods", critical)):
            if value < 0 or 0 < value < 1:
                yield invalid(field, f"{field} {value} must be either zero or >= 1 sec", "0s, or 1s and longer")
    elif whole > 0 or critical > 0:
        text = "shutdownGracePeriod and shutdownGracePeriodCriticalPods require feature gate GracefulNodeShutdown"
        yield invalid("shutdownGracePeriod", text, "0s")
    by_priority = configuration.shutdown_grace_period_by_pod_priority
    if not by_priority:
        return
    if not gates.enabled("GracefulNodeShutdownBasedOnPodPriority"):
        text = "shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority"
        yield invalid("shutdownGracePeriodByPodPriority", text, "unset")
    elif whole > 0 or critical > 0:
        text = "shutdownGracePeriodByPodPriority and shutdownGracePeriod cannot be set at the same time"
        yield invalid("shutdownGracePeriodByPodPriority", text, "one of the two")


def check_restart_back_off(subject: ValidationInput) -> Iterator[Finding]:
    """crashLoopBackOff.maxContainerRestartPeriod: only with its gate, 1s to 300s."""
    field = "crashLoopBackOff.maxContainerRestartPeriod"
    period = subject.configuration.crash_loop_back_off.max_container_restart_period
    if not subject.gates.enabled("KubeletCrashLoopBackOffMax"):
        if period is not None:
            text = f"{field} must not be set while feature gate KubeletCrashLoopBackOffMax is off"
            yield invalid(field, text, "unset")
    elif period is None or not 1 <= period <= 300:
        shown = "unset" if period is None else f"{float(period):g} seconds"
        yield invalid(field, f"{field} (got: {shown}) must be between 1s and 300s", "1s to 300s")
