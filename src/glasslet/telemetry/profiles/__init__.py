"""Profiles of the agent in pprof's format, which `go tool pprof` reads."""
