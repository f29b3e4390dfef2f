"""The folder `plugins_registry`: each socket in it belongs to a plugin that wants to be known (CSI, DRA, devices)."""
