"""The API server's rules for a newly created pod (core/v1 at v1.34), for pods that do not come from one.

Every module checks one topic and yields FieldErrors; all errors are reported, in upstream's words. The rules are the
strict ones that upstream applies to manifests (no relaxed environment names, no restart rules of single containers, no
zero-second sleeps), whatever the feature gates of a cluster allow. Windows options are not checked.
Start at `glasslet.api.validation.pod`.
"""
