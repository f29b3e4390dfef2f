"""Workloads on one machine: a thin layer that turns documents into static pods, objects in a folder and addresses.

The agent stays a kubelet: it runs the static pods, and reads the objects as it would from an API server.
"""
