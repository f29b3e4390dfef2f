"""The fixed words of the answers: rules, states, kinds."""

from __future__ import annotations

from enum import StrEnum


class OpenEnum(StrEnum):
    """An enumeration that also takes words that it does not list, so that an older tool reads a newer agent."""

    @classmethod
    def _missing_(cls, value: object) -> OpenEnum | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_ = word._value_ = value
        return word


class WorkerState(OpenEnum):
    """The state of a pod's worker, in the order in which a pod passes through them."""

    SYNCING = "syncing"
    """The pod is to run."""
    TERMINATING = "terminating"
    """Its containers are being stopped."""
    TERMINATED = "terminated"
    """No container runs; volumes and cgroup are being removed."""
    FINISHED = "finished"
    """The pod uses nothing any more."""


class Rule(OpenEnum):
    """The rule that gave a verdict."""

    # About a pod, in the order in which the rules are tried.
    HELD = "held"
    FINALIZER = "finalizer"
    REJECTED = "rejected"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NO_PROGRESS = "no_progress"
    CONTAINER_STOPPING = "container_stopping"
    TERMINATING = "terminating"
    RUNTIME_DOWN = "runtime_down"
    MISSING_OBJECT = "missing_object"
    IMAGE_FAILED = "image_failed"
    CONFIG_ERROR = "config_error"
    CRASH_BACK_OFF = "crash_back_off"
    POST_START_HOOK = "post_start_hook"
    VOLUME_NOT_READY = "volume_not_ready"
    CLAIM_NOT_PREPARED = "claim_not_prepared"
    SANDBOX = "sandbox"
    NETWORK_NOT_READY = "network_not_ready"
    PREDECESSOR = "predecessor"
    NAME_CLASH = "name_clash"
    DEVICE_PLUGIN = "device_plugin"
    IMAGE_PULLING = "image_pulling"
    INIT_NOT_FINISHED = "init_not_finished"
    SIDECAR_NOT_STARTED = "sidecar_not_started"
    INIT_FAILED = "init_failed"
    READINESS_GATE = "readiness_gate"
    NOT_READY = "not_ready"
    ENDED_CONTAINER = "ended_container"
    FINE = "fine"
    WAITING = "waiting"
    UNDER_WAY = "under_way"
    WAITING_REASON = "waiting_reason"
    UNKNOWN = "unknown"
    GONE = "gone"
    """Only the record of the pod is left."""

    # About the node; RUNTIME_DOWN, NETWORK_NOT_READY, NOT_READY and FINE are used here too.
    CERTIFICATE_EXPIRED = "certificate_expired"
    CREDENTIALS_REFUSED = "credentials_refused"
    REGISTRATION_REFUSED = "registration_refused"
    API_UNREACHABLE = "api_unreachable"
    NOT_REGISTERED = "not_registered"
    LEASE_FAILING = "lease_failing"
    NOT_REPORTED = "not_reported"
    START_REFUSED = "start_refused"
    AGENT_STARTING = "agent_starting"
    AGENT_STOPPED = "agent_stopped"
    BROKEN_MANIFEST = "broken_manifest"
    FINDING = "finding"
    """A finding of the agent, or of a pod that has no other trouble."""


class VerdictSubject(OpenEnum):
    """The kind of thing that a verdict is about."""

    NODE = "node"
    POD = "pod"
    MANIFEST = "manifest"
    AGENT = "agent"


class VerdictState(OpenEnum):
    """How things are with the pod or node that a verdict is about."""

    FINE = "fine"
    STARTING = "starting"
    WAITING = "waiting"
    FAILING = "failing"
    HELD = "held"
    """A person stopped the pod at a station."""
    STOPPING = "stopping"
    ENDED = "ended"


class ContainerKind(OpenEnum):
    """The part that a container plays in its pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"
    EPHEMERAL = "ephemeral"


class EventKind(OpenEnum):
    """What a line of a timeline is about."""

    STATION = "station"
    WAIT = "wait"
    DECISION = "decision"
    OBSERVED = "observed"
    FINDING = "finding"
    GAP = "gap"
    """No agent ran."""


class Outcome(OpenEnum):
    """How a station or a wait ended."""

    OK = "ok"
    FAILED = "failed"
    CANCELLED = "cancelled"
    CUT = "cut"
    """The agent died meanwhile."""


class Milestone(OpenEnum):
    """Where the window of a waterfall ends."""

    READY_ACCEPTED = "Ready accepted at API"
    READY = "Ready"
    RUNNING = "Running"
    ENDED = "ended"
    NOW = "now"
    """The start is under way."""
