"""Why a pod is as it is: rules over what is known of it, asked in order; the first that applies gives the verdict.

A rule is a pure function `(Situation) -> VerdictAnswer | None`. Rules read the API's own words (reasons and messages of
a status) because they explain them to a person; no behaviour of the agent depends on a verdict.
"""
