"""Plugins that register by a socket in the folder `plugins_registry` (CSI, DRA, devices)."""
