"""The session of `glasslet exec`: its terminal, and the protocols that carry it."""
