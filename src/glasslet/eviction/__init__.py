"""Node-pressure eviction and limits of local storage: pods that end so that the node lives on.

    figures (stats) ─▶ observe ─▶ assess ─▶ rank ─▶ evict one pod ─▶ again
                                    └──▶ NodePressures: conditions of the node, admission

All decisions are pure; `EvictionManager` reads, acts and records. Sources: KEP-2033 and the node-pressure eviction page
of the Kubernetes documentation; local limits: KEP-361.
"""
