"""All rules that configuration and flags must follow; one idea per file, every broken rule reported."""

from __future__ import annotations

from glasslet.config.validation import (
    choices,
    command_line,
    enforcement,
    eviction,
    images,
    managers,
    memory,
    node,
    numbers,
    observability,
    shutdown,
)
from glasslet.config.validation.finding import Finding, Rule, ValidationInput

RULES: tuple[Rule, ...] = (
    command_line.check_node_labels,
    observability.check_logging,
    numbers.check_numbers,
    numbers.check_cfs_period,
    choices.check_choices,
    enforcement.check_cgroups,
    enforcement.check_enforcement,
    enforcement.check_reserved_cpus,
    images.check_pulls,
    images.check_image_collection,
    images.check_credential_verification,
    shutdown.check_shutdown,
    shutdown.check_restart_back_off,
    memory.check_reserved_memory,
    node.check_taints,
    node.check_serving_certificate,
    node.check_machine_version,
    observability.check_log_query,
    observability.check_log_directory,
    observability.check_tracing,
    command_line.check_flags,
    choices.check_start_choices,
    choices.check_access,
    memory.check_reservations,
    eviction.check_eviction,
    managers.check_cpu_manager,
    managers.check_topology_manager,
    managers.check_memory_manager,
    node.check_swap_limit,
    node.check_log_size,
    node.check_sysctls,
)


def validate(subject: ValidationInput) -> list[Finding]:
    """Every broken rule, in upstream's order of steps. Pure: looks at nothing but the subject."""
    return [finding for rule in RULES for finding in rule(subject)]
