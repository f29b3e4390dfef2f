"""A pod's start as a waterfall, and its events as a timeline. Pure."""
