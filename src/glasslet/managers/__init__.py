"""Who gets which CPUs and memory of the node: CPU manager, memory manager, and the topology manager above them.

Decisions are pure: a layout of the machine, what is held, a demand; out come the new holdings or a refusal.
"""
