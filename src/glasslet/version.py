"""The versions this agent answers with. Kept free of imports: `kubelet --version` must be instant."""

VERSION = "0.1.0"
KUBERNETES_VERSION = "v1.34.0"
KUBELET_VERSION = f"{KUBERNETES_VERSION}+glasslet.{VERSION}"
