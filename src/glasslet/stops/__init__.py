"""Stops: pods are held at places of their way, on request of a person, while all others go on."""
