"""CSI drivers and their volumes over real gRPC."""
