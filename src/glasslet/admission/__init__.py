"""May this pod run here? One pure rule per file, put in order by `chain.py`.

A rule takes a `Candidate` and answers `Rejected(reason, message)`, or None when it has nothing against the pod. Reasons
and messages are upstream's, word for word: tools and people look for them (behaviours.md §14).
"""
