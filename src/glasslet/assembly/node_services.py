"""Builds what the agent does for the node beside its pods."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from glasslet.assembly.foundation import Foundation
from glasslet.assembly.platform import Platform
from glasslet.concurrency.services import running
from glasslet.host.kernel_settings import LEAVE_MACHINE, set_kernel_settings
from glasslet.host.lock_file import LockFile, contended
from glasslet.host.mounts.sharing import make_shared
from glasslet.host.threads import HostCallStuck
from glasslet.node.firewall import Firewall
from glasslet.node.oom_watch import OomWatch
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)
_LAST_EVENT_WITHIN = 2.0
"""Seconds that the event of a failed start has to reach the API server."""


@asynccontextmanager
async def reporting_failure(foundation: Foundation) -> AsyncIterator[None]:
    """A start that fails is an event of the node before the agent ends."""
    try:
        yield
    except Exception as error:
        foundation.events.node("Warning", "KubeletSetupFailed", str(error))
        await foundation.events.written(within=_LAST_EVENT_WITHIN)
        raise


async def take_lock_file(foundation: Foundation, waiting_for: Callable[[str], None], layers: AsyncExitStack) -> None:
    """Waits for --lock-file, which is held to the end. With --exit-on-lock-contention the calling task is cancelled as
    soon as another process opens the file. Raises LockNotTaken."""
    options, agent = foundation.loaded.options, asyncio.current_task()
    if not options.lock_file or agent is None:
        return
    lock = LockFile(options.lock_file, recorder=foundation.record)
    await lock.take(waiting_for)
    layers.callback(lock.release)
    if options.exit_on_lock_contention:

        async def hand_over() -> None:
            await contended(options.lock_file)
            logger.info("lock file is asked for by another process", extra={"file": options.lock_file})
            agent.cancel()

        await layers.enter_async_context(running({"lock file": hand_over}))


async def prepare_machine(foundation: Foundation) -> None:
    """Kernel settings, and mounts below the root directory that reach containers. What fails is a finding: most pods
    run without."""
    if _leaves_machine():
        return
    if not foundation.configuration.protect_kernel_defaults:
        for problem in set_kernel_settings():
            foundation.record.finding(problem)
    folder = foundation.root.root_dir
    try:
        made = await foundation.threads.run(
            partial(make_shared, folder), on=f"shared mount of {folder}", kind=WaitKind.VOLUME
        )
        if made:
            logger.info("root directory is a shared mount now", extra={"folder": folder})
    except (OSError, HostCallStuck) as error:
        foundation.record.finding(f"mounts below {folder} do not reach containers: {error.strerror or error}")


def build_node_services(platform: Platform) -> Mapping[str, Callable[[], Awaitable[None]]]:
    """The services by name."""
    foundation = platform.foundation
    oom = OomWatch(
        pods=platform.runtime.observed.all,
        node_events=foundation.events.node,
        pod_events=foundation.events.pod,
        recorder=foundation.record,
    )
    services = {"out-of-memory kills": oom.run}
    if foundation.configuration.make_iptables_util_chains and not _leaves_machine():
        services["iptables"] = Firewall(threads=foundation.threads, recorder=foundation.record).run
    return services


def _leaves_machine() -> bool:
    return os.environ.get(LEAVE_MACHINE, "").lower() == "true"
