"""Why a pod or the node is as it is: rules, tried in order; the first that applies gives the verdict.

A rule is a pure function `(Situation) -> VerdictAnswer | None`. Rules read the API's own words (reasons and messages of
a status) because they explain them to people; no behaviour of the agent depends on a verdict.
"""
