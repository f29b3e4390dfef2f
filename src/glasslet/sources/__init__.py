"""The pods that should run here: from manifests in folders and at a URL, and from the API server, merged into one set.

`DesiredPods` owns the answer; a source only ever says "these are all my pods now".
"""
