"""Runtime handlers of pods: RuntimeClasses of the API server, features that the runtime tells, ids of the node."""

from __future__ import annotations

from glasslet.assembly.foundation import Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.host.files.pod_files import PodFiles
from glasslet.host.subordinate_ids import SubordinateIdsUnusable, subordinate_ids
from glasslet.host.user_ids import LAST_ID, UNIT, NoUserIds, SpareIds, UserIds
from glasslet.kubeapi.objects.runtime_classes import RuntimeClasses
from glasslet.pods.runtime_handlers import PodRuntimeHandlers


def build_runtime_handlers(foundation: Foundation, runtime: RuntimeSide, files: PodFiles) -> PodRuntimeHandlers:
    """Reads which ids pods may have, and which of them are in use."""
    clients = foundation.clients
    return PodRuntimeHandlers(
        classes=RuntimeClasses(client=clients.requests) if clients is not None else None,
        handlers=lambda: runtime.conditions.handlers,
        ids=_ids(foundation, files) if foundation.loaded.gates.enabled("UserNamespacesSupport") else None,
    )


def _ids(foundation: Foundation, files: PodFiles) -> UserIds | NoUserIds:
    configuration = foundation.configuration
    section = configuration.user_namespaces
    per_pod = (section.ids_per_pod if section is not None else None) or UNIT
    try:
        own = subordinate_ids()
    except SubordinateIdsUnusable as error:
        return _nobody(foundation, str(error))
    # Without ids of the administrator's: all but the first block, which is the host's.
    first, count = own if own is not None else (per_pod, LAST_ID - LAST_ID % per_pod - per_pod)
    spare = SpareIds(first=first, count=count, per_pod=per_pod)
    problem = spare.problem(configuration.max_pods)
    if problem is not None:
        return _nobody(foundation, problem)
    ids = UserIds(root=foundation.root, spare=spare)
    for text in ids.load(files.uids_on_disk()):
        foundation.record.finding(text)
    return ids


def _nobody(foundation: Foundation, why: str) -> NoUserIds:
    """One setting of the machine that is wrong is no reason to run no pods at all."""
    foundation.record.finding(f"no pod can have a user namespace: {why}")
    return NoUserIds(why)
