"""Metrics under the Go kubelet's names, labels and buckets, declared by theme on a registry that is passed in."""
