"""Which pods should run here: manifests in folders, at a URL (and later the API server), merged into one desired set.

`DesiredPods` owns the answer; a source only ever says "these are all my pods now".
"""
