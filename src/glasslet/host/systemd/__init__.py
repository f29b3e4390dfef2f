"""systemd and logind over D-Bus: the system bus, units, the shutdown of the node."""
