"""Rules about fields with a closed set of values."""

from __future__ import annotations

from collections.abc import Iterator

from glasslet.config.validation.finding import Finding, ValidationInput, invalid, quoted, refused
from glasslet.config.validation.numbers import named

_VALIDATED = (
    ("topologyManagerPolicy", "topology_manager_policy", ("none", "best-effort", "restricted", "single-numa-node")),
    ("topologyManagerScope", "topology_manager_scope", ("container", "pod")),
    ("hairpinMode", "hairpin_mode", ("none", "hairpin-veth", "promiscuous-bridge")),
)
_TLS_VERSIONS = ("", "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")
CIPHER_SUITES = frozenset(
    """
    TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256
    TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA
    TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305
    TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 TLS_ECDHE_ECDSA_WITH_RC4_128_SHA
    TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256
    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA
    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305
    TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 TLS_ECDHE_RSA_WITH_RC4_128_SHA TLS_RSA_WITH_3DES_EDE_CBC_SHA
    TLS_RSA_WITH_AES_128_CBC_SHA TLS_RSA_WITH_AES_128_CBC_SHA256 TLS_RSA_WITH_AES_128_GCM_SHA256
    TLS_RSA_WITH_AES_256_CBC_SHA TLS_RSA_WITH_AES_256_GCM_SHA384 TLS_RSA_WITH_RC4_128_SHA
    """.split()  # noqa: SIM905 - the names read better as prose
)


def check_choices(subject: ValidationInput) -> Iterator[Finding]:
    """Choices of the validation step."""
    configuration = subject.configuration
    for field, attribute, allowed in _VALIDATED:
        value = getattr(configuration, attribute)
        if value not in allowed:
            text = f'{named(field)} "{value}" must be one of: {quoted(allowed)}'
            yield invalid(field, text, ", ".join(allowed))
    behavior = configuration.memory_swap.swap_behavior
    if not subject.gates.enabled("NodeSwap"):
        if behavior:
            text = "memorySwap.swapBehavior must not be set while feature gate NodeSwap is off"
            yield invalid("memorySwap.swapBehavior", text)
    elif behavior not in ("", "LimitedSwap", "NoSwap"):
        text = f'memorySwap.swapBehavior "{behavior}" must be one of: "", "LimitedSwap" or "NoSwap"'
        yield invalid("memorySwap.swapBehavior", text, "LimitedSwap, NoSwap")
    if configuration.run_once:
        text = "runOnce (--runOnce) true: the run-once mode is gone and must not be set"
        yield invalid("runOnce", text, "false")
    if not configuration.container_runtime_endpoint:
        yield invalid("containerRuntimeEndpoint", "the containerRuntimeEndpoint is empty", "unix:///path/to/socket")
    hidden = configuration.show_hidden_metrics_for_version
    if hidden not in ("", "1.33"):
        text = f"--show-hidden-metrics-for-version must be omitted or have the value '1.33', got {hidden!r}"
        yield Finding("showHiddenMetricsForVersion", text, "1.33")


def check_start_choices(subject: ValidationInput) -> Iterator[Finding]:
    """Choices that upstream looks at while it starts."""
    configuration = subject.configuration
    if configuration.tls_min_version not in _TLS_VERSIONS:
        text = f'unknown tls version "{configuration.tls_min_version}", want {quoted(_TLS_VERSIONS[1:])}'
        yield refused("tlsMinVersion", text, ", ".join(_TLS_VERSIONS[1:]))
    for suite in configuration.tls_cipher_suites:
        if suite not in CIPHER_SUITES:
            text = f"Cipher suite {suite} not supported or doesn't exist"
            yield refused(
                "tlsCipherSuites", text, "a Go cipher suite name such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
            )
    strategy = configuration.config_map_and_secret_change_detection_strategy
    if subject.options.kubeconfig and strategy not in ("Get", "Cache", "Watch"):
        text = f'unknown configmap and secret manager mode: "{strategy}"'
        yield refused("configMapAndSecretChangeDetectionStrategy", text, "Get, Cache, Watch")


def check_access(subject: ValidationInput) -> Iterator[Finding]:
    """Authentication and authorisation: known modes, and an API client where one is needed."""
    configuration = subject.configuration
    mode = configuration.authorization.mode
    standalone = not subject.options.kubeconfig
    needs = "false, or give --kubeconfig"
    if configuration.authentication.webhook.enabled and standalone:
        yield refused("authentication.webhook.enabled", "no client provided, cannot use webhook authentication", needs)
    if mode not in ("AlwaysAllow", "Webhook"):
        text = f"unknown authorization mode {mode}" if mode else "no authorization mode specified"
        yield refused("authorization.mode", text, "AlwaysAllow, Webhook")
    elif mode == "Webhook" and standalone:
        text = "no client provided, cannot use webhook authorization"
        yield refused("authorization.mode", text, "AlwaysAllow, or give --kubeconfig")
