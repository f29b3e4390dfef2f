"""The shapes of the agent's answers: all that the command line tool and the agent share.

Answers are frozen values, JSON on the wire (camelCase). Times are aware and UTC; names ending in `_ms` are
milliseconds, other durations are seconds. Fields and words are only added, so that an older tool reads a newer agent.
"""
