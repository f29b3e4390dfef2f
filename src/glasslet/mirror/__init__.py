"""Mirror pods: API objects that show the static pods of this node, so that people and controllers see them.

A mirror is created, created again when it is deleted or shows another version of the pod, and deleted when the static
pod is removed. It never causes anything to run or stop. Rules: behaviours.md §13.
"""
