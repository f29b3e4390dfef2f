"""The command line of the Go kubelet: its flags, their values, flags of other years, and the help text."""
