"""Volumes of CSI drivers: drivers that register, their calls, and what they have on this node."""
