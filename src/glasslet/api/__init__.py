"""Kubernetes objects as typed, frozen data; Quantity; times. No I/O.

Field names are snake_case here and camelCase on the wire; absent and empty values are not encoded.
Go pointers are `| None`, Go values have Go's zero value as their default, lists are tuples.
"""
