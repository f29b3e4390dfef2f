"""Builds what stands on the runtime's connection: observation, images, logs, runtime handlers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from msgspec import Struct

from glasslet.api.quantity import Quantity
from glasslet.assembly.foundation import Foundation
from glasslet.host.files.pod_files import PodFiles
from glasslet.host.user_ids import UNIT, NoUserIds, UserIds, spare_ids
from glasslet.kubeapi.objects.runtime_classes import RuntimeClasses
from glasslet.pods.runtime_handlers import PodRuntimeHandlers
from glasslet.record.stations import WaitKind
from glasslet.runtime.cri.connection import CRIConnection, connect
from glasslet.runtime.cri.handshake import HandshakeFailed
from glasslet.runtime.cri.verbs import Timeouts
from glasslet.runtime.images.manager import ImageManager, PullPolicy
from glasslet.runtime.images.progress_watch import PullWatch
from glasslet.runtime.images.pull_record_files import PullRecordFiles
from glasslet.runtime.images.verification import PullVerification, VerificationPolicy
from glasslet.runtime.logs import LogRotator, RotationPolicy
from glasslet.runtime.observed import ObservedPods, RuntimeConditions
from glasslet.runtime.observed.runtime_process import RuntimeProcess

logger = logging.getLogger(__name__)

_PATIENCE = 15.0
"""Seconds that a start waits for a runtime that is starting, too; then the service manager restarts the agent."""
_RETRY = 0.5


class RuntimeSide(Struct, frozen=True, kw_only=True):
    """The parts that use the CRI connection."""

    connection: CRIConnection
    observed: ObservedPods
    conditions: RuntimeConditions
    images: ImageManager
    pull_watch: PullWatch
    verification: PullVerification | None
    """Verifies pods' rights to present images; None: not verified."""
    rotator: LogRotator


async def connect_runtime(foundation: Foundation, waiting_for: Callable[[str], None]) -> CRIConnection:
    """Connects, and retries failures that look temporary. Raises EndpointError, HandshakeFailed."""
    configuration = foundation.configuration
    deadline = foundation.clock.monotonic() + _PATIENCE
    while True:
        try:
            return await connect(
                configuration.container_runtime_endpoint,
                configuration.image_service_endpoint,
                recorder=foundation.record,
                metrics=foundation.metrics.runtime,
                timeouts=Timeouts(request=configuration.runtime_request_timeout),
                sandbox_metrics=foundation.metrics.runtime,
                stops=foundation.arrivals,
            )
        except HandshakeFailed as error:
            if not error.temporary or foundation.clock.monotonic() > deadline:
                raise
            waiting_for(str(error))
            logger.warning("container runtime does not answer yet", extra={"error": str(error)})
        with foundation.record.wait(WaitKind.BACK_OFF, on="container runtime to answer"):
            await asyncio.sleep(_RETRY)


def build_runtime_side(foundation: Foundation, connection: CRIConnection) -> RuntimeSide:
    """The components that read and use the runtime."""
    configuration, clock, record = foundation.configuration, foundation.clock, foundation.record
    observed = ObservedPods(runtime=connection.runtime, recorder=record, metrics=foundation.metrics.pleg, clock=clock)
    verification = _verification(foundation, connection)
    watch = PullWatch(content=connection.content, recorder=record, events=foundation.events.pod, clock=clock)
    return RuntimeSide(
        connection=connection,
        verification=verification,
        pull_watch=watch,
        observed=observed,
        conditions=RuntimeConditions(
            runtime=connection.runtime,
            recorder=record,
            clock=clock,
            health={"PLEG": observed.health_problem},
            process=RuntimeProcess(endpoint=configuration.container_runtime_endpoint, clock=clock),
        ),
        images=ImageManager(
            images=connection.images,
            recorder=record,
            events=foundation.events.pod,
            clock=clock,
            watch=watch,
            policy=PullPolicy(
                serialize_image_pulls=configuration.serialize_image_pulls,
                max_parallel_image_pulls=configuration.max_parallel_image_pulls,
                registry_pull_qps=configuration.registry_pull_qps,
                registry_burst=configuration.registry_burst,
                by_handler=foundation.loaded.gates.enabled("RuntimeClassInImageCriApi"),
            ),
            metrics=foundation.metrics.images,
            verification=verification,
            stops=foundation.arrivals,
        ),
        rotator=LogRotator(
            runtime=connection.runtime,
            pods=observed.all,
            recorder=record,
            clock=clock,
            policy=RotationPolicy(
                container_log_max_size=Quantity.parse(configuration.container_log_max_size).value(),
                container_log_max_files=configuration.container_log_max_files,
                container_log_max_workers=configuration.container_log_max_workers,
                container_log_monitor_interval=configuration.container_log_monitor_interval,
            ),
        ),
    )


def _verification(foundation: Foundation, connection: CRIConnection) -> PullVerification | None:
    if not foundation.loaded.gates.enabled("KubeletEnsureSecretPulledImages"):
        return None
    configuration = foundation.configuration
    return PullVerification(
        policy=VerificationPolicy(
            name=configuration.image_pull_credentials_verification_policy,
            allowlist=tuple(configuration.preloaded_images_verification_allowlist),
        ),
        files=PullRecordFiles(foundation.root.root_dir),
        images=connection.images,
        clock=foundation.clock,
    )


def build_runtime_handlers(foundation: Foundation, runtime: RuntimeSide, files: PodFiles) -> PodRuntimeHandlers:
    """Reads the ids that pods may have, and those in use."""
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
        spare = spare_ids(per_pod=per_pod, pods=configuration.max_pods)
    except NoUserIds as problem:
        # A wrong setting of the machine must not keep other pods from running.
        foundation.record.finding(f"no pod can have a user namespace: {problem}")
        return problem
    ids = UserIds(root=foundation.root, spare=spare)
    for text in ids.load(files.uids_on_disk()):
        foundation.record.finding(text)
    return ids
