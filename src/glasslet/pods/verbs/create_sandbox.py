"""Creates the sandbox of a pod: RunPodSandbox, then one read of it for its address."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from glasslet.api.object import SandboxID
from glasslet.exchange.claims import DeviceClaimProblem
from glasslet.pods.collaborators import WARNING, Observed, ResourceClaims, RuntimeHandlers, Shares
from glasslet.pods.failures import Retry, StepFailed, runtime_failed
from glasslet.pods.memory import PodMemory
from glasslet.pods.planner import POD_LEVEL
from glasslet.pods.reporting import Reporting
from glasslet.pods.verbs.earlier_agent import while_unsettled
from glasslet.podspec.dns import TOO_MUCH, FormedDNS, form_dns
from glasslet.podspec.errors import ConfigError
from glasslet.podspec.request import NodeFacts, SandboxRequest, UserNamespace
from glasslet.podspec.sandbox import sandbox_spec
from glasslet.record.stations import UNUSABLE, Station
from glasslet.runtime.errors import NameReserved, RuntimeCallError, RuntimeTimeout, rpc_words
from glasslet.runtime.model import ObservedSandbox
from glasslet.runtime.protocols import RuntimeService
from glasslet.runtime.spec import SandboxSpec


class SandboxCreator:
    """Makes sandboxes."""

    def __init__(
        self,
        *,
        runtime: RuntimeService,
        observed: Observed,
        node: Callable[[], NodeFacts],
        handlers: RuntimeHandlers,
        shares: Shares,
        claims: ResourceClaims,
        network_error: Callable[[], str | None],
        report: Reporting,
    ) -> None:
        self._runtime = runtime
        self._observed = observed
        self._node = node
        self._handlers = handlers
        self._shares = shares
        self._claims = claims
        self._network_error = network_error
        self._report = report
        self._recorder = report.recorder
        self._events = report.events
        self._metrics = report.work
        self._node_events = report.node_events

    async def create(self, memory: PodMemory, attempt: int) -> None:
        """Runs the sandbox with this attempt. Raises StepFailed."""
        async with self._report.at(Station.SANDBOX, detail=f"attempt {attempt}"):
            self._require_network(memory)
            await self._prepare_claims(memory)
            own_users = memory.pod.spec.host_users is False
            self._metrics.sandbox_attempted(user_namespace=own_users)
            try:
                dns = form_dns(memory.pod, self._node())
                handler = await self._handlers.handler(memory.pod)
                spec = self._make_spec(memory, attempt, handler, dns)
                self._find(memory, dns)
                for problem in dns.problems:
                    self._events(memory.ref, WARNING, problem.reason, problem.message)
                    if problem.node_message:
                        self._node_events(WARNING, problem.reason, problem.node_message)
                await self._run(memory, spec)
            except (ConfigError, OSError, RuntimeCallError) as error:
                self._metrics.sandbox_failed(user_namespace=own_users)
                if memory.pod.metadata.deletion_timestamp is None:
                    text = f"Failed to create pod sandbox: {error}"
                    self._events(memory.ref, WARNING, "FailedCreatePodSandBox", text)
                if isinstance(error, RuntimeCallError):
                    raise runtime_failed(POD_LEVEL, error) from error
                raise StepFailed(POD_LEVEL, f"the sandbox {UNUSABLE}{error}") from error
        memory.went_well(POD_LEVEL)

    def _find(self, memory: PodMemory, dns: FormedDNS) -> None:
        """What is left out of the pod's DNS configuration is so as long as its sandbox; events go after an hour."""
        found = tuple(problem.message for problem in dns.problems if problem.reason == TOO_MUCH)
        for text in set(memory.left_out_of_dns) - set(found):
            self._report.recorder.withdrawn(text, pod=memory.ref)
        for text in found:
            self._report.recorder.finding(text, pod=memory.ref)
        memory.left_out_of_dns = found

    def spec(self, memory: PodMemory, sandbox: ObservedSandbox) -> SandboxSpec:
        """The pod's sandbox as the runtime wants it: for RunPodSandbox, and again for each container in it. Raises
        ConfigError, or OSError for node files that cannot be read."""
        known = memory.sandbox
        if known is not None and known[0] is memory.pod and known[1].attempt == sandbox.attempt:
            return known[1]
        dns = form_dns(memory.pod, self._node())
        return self._make_spec(memory, sandbox.attempt, sandbox.runtime_handler, dns)

    def user_namespace(self, memory: PodMemory, sandbox: ObservedSandbox) -> UserNamespace | None:
        """The ids of the pod, the sandbox's and its containers'. Raises ConfigError."""
        return self._handlers.user_namespace(memory.pod, sandbox.runtime_handler)

    def _make_spec(self, memory: PodMemory, attempt: int, handler: str, dns: FormedDNS) -> SandboxSpec:
        spec = sandbox_spec(
            SandboxRequest(
                pod=memory.pod,
                attempt=attempt,
                node=self._node(),
                dns=dns.config,
                cgroup_parent=memory.cgroup_parent,
                runtime_handler=handler,
                user_namespace=self._handlers.user_namespace(memory.pod, handler),
                supplemental_groups=_groups(memory),
                no_quota=self._shares.without_quota(memory.ref.uid),
            )
        )
        memory.sandbox = (memory.pod, spec)
        return spec

    async def _run(self, memory: PodMemory, spec: SandboxSpec) -> None:
        uid = memory.ref.uid
        try:
            async for _ in while_unsettled(self._recorder, on="a sandbox under the same name"):
                with suppress(NameReserved), self._observed.changing(uid):
                    sandbox = await self._runtime.run_sandbox(spec)
                    await self._read(memory, sandbox)
                    return
                observed = await self._observed.refresh(uid)
                if any(s.attempt == spec.attempt for s in (observed.sandboxes if observed else ())):
                    # An earlier agent made it: it is ours, and the next plan takes it.
                    return
        except RuntimeTimeout:
            # Unknown whether it happened: look, so that the next plan knows.
            await self._observed.refresh(uid)
            raise
        memory.sandbox_attempt_from = spec.attempt + 1
        self._recorder.decided("sandbox name is reserved without a visible owner: next attempt", attempt=spec.attempt)

    async def _read(self, memory: PodMemory, sandbox: SandboxID) -> None:
        """Reads the sandbox that was made. Raises StepFailed."""
        try:
            await self._observed.refresh_sandbox(memory.ref, sandbox)
        except RuntimeCallError as error:
            text = f"Unable to get pod sandbox status: {rpc_words(error)}"
            self._events(memory.ref, WARNING, "FailedPodSandBoxStatus", text)
            raise runtime_failed(POD_LEVEL, error) from error

    async def _prepare_claims(self, memory: PodMemory) -> None:
        """A pod must not run without the devices that it claims."""
        try:
            await self._claims.prepare(memory.pod)
        except DeviceClaimProblem as problem:
            text = f"Failed to prepare dynamic resources: {problem}"
            self._events(memory.ref, WARNING, "FailedPrepareDynamicResources", text)
            raise StepFailed(POD_LEVEL, problem.why, retry=Retry.GROWING) from problem

    def _require_network(self, memory: PodMemory) -> None:
        """Pods on the host's network need none. The event comes once for a row of failures."""
        problem = None if memory.pod.spec.host_network else self._network_error()
        if problem is None:
            return
        if memory.pod_failures == 0:
            self._events(memory.ref, WARNING, "NetworkNotReady", f"network is not ready: {problem}")
        raise StepFailed(POD_LEVEL, f"network is not ready: {problem}", retry=Retry.SOON)


def _groups(memory: PodMemory) -> tuple[int, ...]:
    """Groups that mounted volumes need."""
    groups = (volume.supplemental_group for volume in (memory.volumes or {}).values())
    return tuple(sorted({group for group in groups if group is not None}))
