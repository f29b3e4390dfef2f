"""The Summary API and the Prometheus pages, built from figures. Pure."""
