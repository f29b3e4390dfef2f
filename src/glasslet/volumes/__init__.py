"""Volumes of pods: one file per type behind one small protocol."""
