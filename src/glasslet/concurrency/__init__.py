"""Structured concurrency in the agent's terms: clock, mailbox, supervision. Knows nothing of Kubernetes."""
