"""Use of CPU, memory, processes, network and disk by pods and node. Read on request, never polled."""
