"""The node as the API server sees it: registration, lease, status."""
