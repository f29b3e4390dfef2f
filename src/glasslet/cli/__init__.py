"""The `glasslet` command: asks the agent over its Unix socket and shows the answers.

Each command is a module of its own, imported when it is called. The tool imports nothing of the agent but the shapes of
its answers; where it needs the agent's code (`check`, `up`, records of a stopped agent), it starts it as a process.
"""
