"""The `glasslet` command: sends requests to the agent over its Unix socket and shows the answers.

Each command is a module, imported when it is called. The tool imports nothing of the agent but the shapes of its
answers; where it needs the agent's code (`check`, `up`, the record of a stopped agent), it starts a process.
"""
