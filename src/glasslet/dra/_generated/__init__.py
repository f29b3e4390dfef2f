"""Written by scripts/generate_protos; do not edit."""
