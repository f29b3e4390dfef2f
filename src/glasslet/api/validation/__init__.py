"""What the API server would refuse: the rules for a newly created pod (core/v1 at v1.34), for pods that never met one.

Every module checks one topic and yields FieldErrors; nothing stops at the first. Messages are those of upstream.
The rules are the strict ones that upstream applies to manifests (no relaxed environment names, no restart rules of
single containers, no zero-second sleeps), whatever the feature gates of a cluster allow. Windows options are left out.
Start at `glasslet.api.validation.pod`.
"""
