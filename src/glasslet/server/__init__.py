"""The servers: HTTPS API, read-only port, health port, local socket.

They get functions and values (see `sources`), never the daemon. HTTP/1.1 only: no client of a kubelet needs HTTP/2.
"""
