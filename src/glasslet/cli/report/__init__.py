"""`glasslet report`: all that is known of one pod, in one file to hand on, without secrets."""
