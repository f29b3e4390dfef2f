"""Conversion of a pod to runtime specifications. Pure: same inputs, same specification; no files, no clock."""
