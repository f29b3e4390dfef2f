"""One file per kind of request. Handlers get the few functions they need and a request; access is settled before."""
