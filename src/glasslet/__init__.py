"""glasslet: the Kubernetes kubelet in Python, one that you can see through."""
