"""Frozen values that sibling rooms exchange: what one room produces and another consumes."""
