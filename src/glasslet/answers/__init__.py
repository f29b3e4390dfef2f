"""The shapes of the agent's answers: the only thing that the command line tool and the agent share.

Answers are frozen values, JSON on the wire (camelCase). Times are aware and UTC; names ending in `_ms` are
milliseconds, other durations are seconds. Fields are only ever added, so that an older tool reads a newer agent.
"""
