"""May this pod run here? One pure rule per file, put in order by `chain.py`.

A rule takes a `Candidate` and returns `Rejected(reason, message)`, or None for a pod that may run. Reasons
and messages are upstream's, word for word: tools match them (behaviours.md §14).
"""
