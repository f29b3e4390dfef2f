"""In-place resize (KEP-1287): CPU and memory of running containers change without a new pod.

what the API wants    the pod as a source gives it
what is allocated     what this node granted: what the worker's pod says, what admission counts, what cgroups get
what is actuated      what a running instance was last given

decision      may this pod have what it wants now: granted, deferred, infeasible (pure)
allocations   keeps the three apart for every pod, also over a restart of the agent
resizer       brings a running pod from what is actuated to what is allocated
"""
