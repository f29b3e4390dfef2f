"""Sockets, TLS and connection limits: everything between accept() and an HTTP request, and the tunnels for streams."""
