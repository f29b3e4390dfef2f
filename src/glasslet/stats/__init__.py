"""What pods and node use: CPU, memory, processes, network, disk. Read when somebody asks, never polled."""
