"""What each rule of a verdict means: `glasslet why --explain RULE` and docs/rules.md are made from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from glasslet.answers.states import Rule


class RulePage(Struct, frozen=True):
    """The explanation of one rule. `means`: when it applies; `evidence`: the facts below the sentence; `helps`: what a
    person can do, and what happens by itself."""

    means: str
    evidence: str
    helps: str

    def as_text(self, rule: str) -> str:
        """The page on a terminal."""
        return f"{rule}\n\n{self.means}\n\nEvidence: {self.evidence}\n\nWhat helps: {self.helps}"


_POD: Final[dict[Rule, RulePage]] = {
    Rule.HELD: RulePage(
        "A person holds the pod at one place of its way, by a break or by stepping it. Only its work waits: what runs "
        "of it runs on, with its probes, its logs and its status.",
        "what the pod does first when it goes on.",
        "`glasslet inspect POD` shows all that is known of it, `glasslet step POD` goes to the next place, `glasslet "
        "continue POD` lets it go; `glasslet breaks` lists what holds pods. The hold ends by itself at the time in "
        "the sentence.",
    ),
    Rule.FINALIZER: RulePage(
        "The pod was deleted and its containers have stopped. Finalizers on its object keep the object at the API "
        "server.",
        "the finalizers; when the deletion was requested and with which grace period; the pod's phase.",
        "Check the controller that owns the finalizer: it removes it when its own work is done. If that controller "
        "no longer exists, remove the finalizer by hand (`kubectl patch`). Nothing of the pod is left on this node.",
    ),
    Rule.REJECTED: RulePage(
        "This node refused the pod when it arrived (admission). No container of it ran. The sentence names the one "
        "thing that did not fit: a label, a taint, a host port with its holder, a resource with what is asked, free "
        "and taken, or a field.",
        "the reason in the pod's status; the message of the Go kubelet's form.",
        "Change the node or the pod as the next step says, then create the pod again: a rejected pod is not tried "
        "again. A Deployment or Job creates a new one by itself.",
    ),
    Rule.SUCCEEDED: RulePage(
        "Every container ended with exit code 0, and the restart policy starts none again.",
        "how each container ended.",
        "Nothing has to be done.",
    ),
    Rule.FAILED: RulePage(
        "The pod is over and failed: a container ended with another exit code than 0 and is not started again "
        "(restart policy), or the pod was ended for a reason in its status (deadline, eviction, preemption).",
        "how each container ended, with exit code, signal, memory limit or probe; the reason in the status; the "
        "last log line.",
        "Read the log of the container that failed. The pod itself stays as it is; create it again after the "
        "correction.",
    ),
    Rule.NO_PROGRESS: RulePage(
        "One call or action for this pod takes longer than its kind may take (see docs/record.md). The sentence "
        "names it with its time; below a runtime call it names the process that the runtime waits for, if one was "
        "found.",
        "the processes below the runtime and how long they run; the network plugins; the stacks of the agent's tasks.",
        "Help the party that does not answer: the runtime, the network plugin, the storage or the API server. The "
        "agent goes on by itself when the call returns or reaches its deadline.",
    ),
    Rule.CONTAINER_STOPPING: RulePage(
        "This agent is killing one container of a pod that goes on: a probe failed, its definition changed, or a "
        "resize restarts it. The sentence says which, and when KILL comes.",
        "the message of the event `Killing`.",
        "Wait for the end of the grace period. If a probe failed, see what it checks.",
    ),
    Rule.TERMINATING: RulePage(
        "The pod is being stopped: it was deleted, its deadline passed, or it makes room for another pod. The "
        "sentence names the preStop hook or the grace period that runs, and when KILL comes; or what is left to be "
        "removed.",
        "the containers that still run; when the deletion was requested; finalizers.",
        "Wait, or delete the pod with a shorter grace period. A container that ignores TERM uses the whole grace "
        "period.",
    ),
    Rule.RUNTIME_DOWN: RulePage(
        "The container runtime does not answer or says that it is not ready. No container can be started or "
        "stopped; running containers go on. The sentence says what became of the runtime's process: it has ended, is "
        "stopped by a signal, waits in the kernel, or runs.",
        "the runtime's error; its process, and when it was gone; the error of its network.",
        "Check the runtime's service and its log (`systemctl status containerd`). The agent connects again by itself.",
    ),
    Rule.MISSING_OBJECT: RulePage(
        "The pod refers to a ConfigMap, Secret or claim, or to a key of one, that does not exist.",
        "the container and field, or the volume, that needs it; the message of the Go kubelet's form; how often it "
        "was requested.",
        "Create the object in the pod's namespace, or mark the reference `optional`. The pod goes on by itself.",
    ),
    Rule.IMAGE_FAILED: RulePage(
        "The image of a container could not be pulled, or may not be. The sentence has the cause, cut from the end "
        "of the runtime's chain of errors.",
        "the whole chain of errors; how often it was tried; the pull policy.",
        "Depends on the cause: registry or connection, the node's DNS, CA, login, name or tag, platform, disk. The "
        "agent tries again with growing pauses of up to 5 minutes.",
    ),
    Rule.CONFIG_ERROR: RulePage(
        "A container cannot be created or started from its specification: its user, its environment, its mounts, "
        "its command, or something that the runtime refuses.",
        "the reason in the status (CreateContainerConfigError, CreateContainerError, RunContainerError); the whole "
        "message.",
        "Correct what the sentence names. The container never ran, so there is no log.",
    ),
    Rule.CRASH_BACK_OFF: RulePage(
        "A container ended again and again. Its next start is delayed (back-off: 10 s, doubled each time, 5 minutes "
        "at most). The sentence says how it ended: exit code with its meaning, signal, memory limit, or the probe "
        "for which this agent killed it.",
        "when it ended and how long it ran; its last log line; its termination message; why this agent killed it.",
        "Correct what ended it; its log is kept for each instance. The back-off starts over after 10 minutes "
        "without an end.",
    ),
    Rule.POST_START_HOOK: RulePage(
        "The postStart hook of a container failed, and so the container was killed. It is started again after a "
        "back-off.",
        "the hook's error; the container's last log line.",
        "Correct the hook (`lifecycle.postStart`). It runs beside the container's command, and may run before it is "
        "ready.",
    ),
    Rule.VOLUME_NOT_READY: RulePage(
        "A volume is not mounted yet, or cannot be: the sentence names the volume, what it is made of (object, "
        "driver, path), and the error or the call that lasts.",
        "the volume's source; the last error; how often it was tried; processes that hold a busy mount.",
        "Correct the volume's source or what it refers to. The agent tries again by itself.",
    ),
    Rule.CLAIM_NOT_PREPARED: RulePage(
        "The devices that the pod claims (DRA) are not prepared: the sentence names the driver, the call and what its "
        "error means, or that the driver is not registered on this node.",
        "the call that lasts; the driver's whole error; how often it was tried.",
        "Look at the driver's pod on this node and its log. The agent tries again by itself, at once when the driver "
        "connects.",
    ),
    Rule.SANDBOX: RulePage(
        "The pod's sandbox (its namespaces, network and pause container) cannot be created. Most often a network "
        "plugin (CNI) fails, is missing, or does not answer.",
        "the runtime's whole error; how often and when it was tried; the state of the runtime's network.",
        "Check the network plugin that the sentence names and its configuration in /etc/cni/net.d. The agent tries "
        "again.",
    ),
    Rule.NETWORK_NOT_READY: RulePage(
        "The runtime has no network for pods, most often for lack of a CNI configuration, or because it cannot read "
        "the one it has: the sentence names the folder or the file. Pods with `hostNetwork: true` run; all others "
        "wait.",
        "the runtime's message.",
        "Install a CNI configuration (/etc/cni/net.d) and its plugins (/opt/cni/bin): most often the network's "
        "DaemonSet.",
    ),
    Rule.PREDECESSOR: RulePage(
        "An earlier pod of the same name has not been removed yet. This one starts when it is.",
        "the earlier pod.",
        "Wait. `glasslet why` on the earlier pod says what it waits for.",
    ),
    Rule.NAME_CLASH: RulePage(
        "Two manifests of this node have pods of one name and namespace. Only one of them runs: the one that "
        "came first.",
        "the pod that is in the way.",
        "Give one of the two another name, or remove one of the files. The other pod starts when the first has ended.",
    ),
    Rule.DEVICE_PLUGIN: RulePage(
        "The pod gets devices, and their device plugin has not answered.",
        "the plugin and its call.",
        "Check the plugin's pod and log. The call ends at its deadline, and is tried again.",
    ),
    Rule.IMAGE_PULLING: RulePage(
        "The image of a container is being pulled, or its pull waits in the queue behind others, or for a "
        "credential plugin.",
        "the image; how many bytes have come and how fast, since when none comes; how many pulls come first.",
        "Wait. `serializeImagePulls: false` or `maxParallelImagePulls` let pulls run side by side.",
    ),
    Rule.INIT_NOT_FINISHED: RulePage(
        "An init container runs. The containers after it start when it has ended with exit code 0.",
        "its last log line.",
        "Read its log: it may itself wait for something.",
    ),
    Rule.SIDECAR_NOT_STARTED: RulePage(
        "A sidecar (an init container with `restartPolicy: Always`) runs, and its startup probe has not passed.",
        "the probe and its last result.",
        "Check what the probe checks.",
    ),
    Rule.INIT_FAILED: RulePage(
        "An init container failed, so the containers after it do not start.",
        "how it ended; its last log line; its termination message.",
        "Read its log. With restart policy Never the pod stays so; else it is started again.",
    ),
    Rule.READINESS_GATE: RulePage(
        "All containers are ready, and a readiness gate of the pod is not True. Another component sets it.",
        "the gates; the reason and message that its component gave.",
        "Check the component that sets this condition, for instance the controller of a load balancer.",
    ),
    Rule.NOT_READY: RulePage(
        "A container runs and its startup or readiness probe does not pass; or the node is not ready for a reason "
        "that the agent reports itself.",
        "the probe; its last result; how long the container runs; its last log line.",
        "Run the probe's check by hand with `glasslet exec`. A pod that is not ready gets no traffic from Services.",
    ),
    Rule.ENDED_CONTAINER: RulePage(
        "A container ended and stays down by its restart policy, while others of the pod run.",
        "how it ended; its last log line.",
        "Read its log. If it is meant to run on, change the restart policy.",
    ),
    Rule.FINE: RulePage(
        "Everything is as the specification wants it.",
        "the address; how earlier instances of the containers ended.",
        "Nothing has to be done.",
    ),
    Rule.WAITING: RulePage(
        "The pod waits for something that no other rule explains further; the sentence names it, how long, and after "
        "which time the agent gives a call up.",
        "other waits of the pod; the processes below a call of the runtime.",
        "`glasslet waits POD` lists them all. Past its limit a wait becomes `no_progress`.",
    ),
    Rule.UNDER_WAY: RulePage(
        "The pod is starting, and works at a station of its start.",
        "none.",
        "Wait, or watch it with `glasslet trace POD`.",
    ),
    Rule.WAITING_REASON: RulePage(
        "A container waits for the reason in its status, and the agent has no wait for it: most often another "
        "container or the sandbox comes first.",
        "the reason.",
        "Wait, or watch it with `glasslet trace POD`.",
    ),
    Rule.UNKNOWN: RulePage(
        "The pod is not as it should be, and the agent waits for nothing on its behalf.",
        "none.",
        "`glasslet trace POD` shows what happened. Please report it: each state is meant to have a cause.",
    ),
    Rule.GONE: RulePage(
        "The pod is not on this node any more, or no agent runs. The answer comes from the record.",
        "the last decision about it; its findings.",
        "`glasslet trace POD` shows its start.",
    ),
}
_NODE: Final[dict[Rule, RulePage]] = {
    Rule.START_REFUSED: RulePage(
        "No agent runs: its last start ended with an error. The sentence has the error: configuration, "
        "certificates, ports, clock, root directory, disk, cgroup driver, or another agent.",
        "every problem with the flag or file that it comes from; when the start was; its command line's root "
        "directory.",
        "Correct it, and check with `glasslet check -- FLAGS`, which lists all problems at once without a start.",
    ),
    Rule.AGENT_STARTING: RulePage(
        "The agent's process runs and does not answer yet: its start waits for the party that the sentence names.",
        "the process; since when it waits.",
        "Help the party that is waited for, most often the container runtime.",
    ),
    Rule.AGENT_STOPPED: RulePage(
        "No agent runs. It was ended, or its process died.",
        "the process; its last sign of life.",
        "Start it again (`systemctl start kubelet`, `glasslet up`): running containers are adopted, none is "
        "restarted. If it died, the log of its service says how (`journalctl -u kubelet`).",
    ),
    Rule.CERTIFICATE_EXPIRED: RulePage(
        "The node's client certificate has expired. The API server accepts nothing from the node, so it cannot "
        "renew it itself.",
        "the end of its validity; the errors of registration and lease.",
        "Give the node a bootstrap kubeconfig and remove the old certificate; or write new credentials into the "
        "kubeconfig. With kubeadm: `kubeadm kubeconfig user` or joining again. Check the clock first.",
    ),
    Rule.CREDENTIALS_REFUSED: RulePage(
        "The API server does not know who the node is (401): its token or client certificate is not, or no longer, "
        "good; or the agent cannot read them.",
        "the error of the last request; the time of the last heartbeat.",
        "Give the node new credentials in its kubeconfig; the agent reads the files again by itself. Check the clock "
        "first: certificates and tokens are good for a time only.",
    ),
    Rule.REGISTRATION_REFUSED: RulePage(
        "The API server answers and refuses this node's registration.",
        "its answer.",
        "Check the user of the kubeconfig (system:node:NAME in group system:nodes), the node's name and its labels.",
    ),
    Rule.API_UNREACHABLE: RulePage(
        "Requests to the API server get no good answer. The sentence names the obstacle: an unknown host, name servers "
        "that do not answer, a refused connection, no route, no answer in time, a certificate that the node does not "
        "accept, TLS, or an answer of 429 or 5xx. Pods on the node go on; no new ones arrive.",
        "the error of the last request; the time of the last heartbeat.",
        "Check the API server, its address in the kubeconfig, and the connection. Statuses follow when it is back.",
    ),
    Rule.NOT_REGISTERED: RulePage(
        "There is no Node object for this node: its first registration is under way, or it was deleted. The sentence "
        "says when, and whether the agent creates it again.",
        "the API server's answer.",
        "Wait for the next try. With `registerNode: false` the operator creates the Node.",
    ),
    Rule.LEASE_FAILING: RulePage(
        "The node's lease in the namespace kube-node-lease cannot be renewed. The cluster takes the node for dead "
        "when it ends.",
        "the API server's answer; the last heartbeat.",
        "Check the node's rights on leases, and that the namespace exists.",
    ),
    Rule.NOT_REPORTED: RulePage(
        "The node is ready, and the API server shows something else: the next report is not there yet, or is refused.",
        "what the API server has; its answer to the last report.",
        "Wait some seconds; then see the answer in the evidence.",
    ),
    Rule.BROKEN_MANIFEST: RulePage(
        "No pod comes of a manifest file. The sentence has its first problem with line and field.",
        "every problem of the file.",
        "Correct the file: the agent reads it again at once. `glasslet check FILE` lists all problems before.",
    ),
    Rule.FINDING: RulePage(
        "The agent found something that a person should know. Findings about the agent do not count as wrong; "
        "findings about a pod do.",
        "none beyond the sentence.",
        "See the sentence. `glasslet trace --agent` shows when it began. It is withdrawn when its cause ends.",
    ),
}
ABOUT_NODES: Final = tuple(_NODE)
PAGES: Final[Mapping[Rule, RulePage]] = _POD | _NODE
