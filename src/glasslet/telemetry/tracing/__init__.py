"""OpenTelemetry: spans of a pod's work, sent to a collector (`tracing:` of KubeletConfiguration)."""
