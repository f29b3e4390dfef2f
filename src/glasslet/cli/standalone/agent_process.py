"""The agent as a process: `python -m glasslet.kubelet`, configured for one machine without a cluster."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec

from glasslet.answers.agent import AgentAnswer
from glasslet.cli.agent_client import AgentClient
from glasslet.cli.failure import Failure
from glasslet.cli.standalone import processes
from glasslet.cli.standalone.state_dir import StateDir

_START_SECONDS = 30.0
_STOP_SECONDS = 15.0


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the agent. Port 0 switches a server off; `hostname` "": the machine's; `names`: the server of names
    for pods, "" for the machine's."""

    endpoint: str
    manifests: Path
    port: int = 10250
    healthz_port: int = 10248
    hostname: str = ""
    verbosity: int = 2
    names: str = ""


class AgentProcess:
    """The agent of one state folder."""

    def __init__(self, state: StateDir) -> None:
        self.state = state
        self.client = AgentClient(state.root_dir)

    def running(self) -> int | None:
        """Its pid, None if it does not run."""
        return processes.find(self.state.agent_pid, mark=f"--root-dir={self.state.root_dir}")

    def start(self, options: AgentOptions) -> None:
        """Starts it and returns when it answers. Raises Failure with the end of its log."""
        self.state.config.write_text(configuration(options, logs=self.state.path / "logs"))
        self._options.write_bytes(msgspec.json.encode(options, enc_hook=str))
        process = processes.start(
            command(self.state, options),
            pid_file=self.state.agent_pid,
            log=self.state.agent_log,
            # Another folder than that of a kubelet on the same machine.
            environment={
                "GLASSLET_DEVICE_PLUGIN_DIR": f"{self.state.root_dir}/device-plugins",
                "GLASSLET_LEAVE_MACHINE": "true",
                "GLASSLET_OBJECTS": str(self.state.objects),
            },
        )
        until = time.monotonic() + _START_SECONDS
        while not self.client.answers():
            if process.poll() is not None:
                raise self.failed(f"the agent ended with exit code {process.returncode}")
            if time.monotonic() > until:
                self.stop()
                raise self.failed(f"the agent does not answer after {_START_SECONDS:.0f} s")
            time.sleep(0.02)

    def last_options(self) -> AgentOptions | None:
        """The settings of its last start."""
        try:
            return msgspec.json.decode(
                self._options.read_bytes(), type=AgentOptions, dec_hook=lambda _, text: Path(text)
            )
        except (OSError, msgspec.MsgspecError):
            return None

    @property
    def _options(self) -> Path:
        return self.state.path / "agent.json"

    def stop(self) -> None:
        """Ends it; its pods keep running."""
        if (pid := self.running()) is not None:
            processes.stop(pid, seconds=_STOP_SECONDS)
        self.state.agent_pid.unlink(missing_ok=True)

    def facts(self) -> AgentAnswer:
        """The agent's description of itself."""
        return self.client.get("/agent", AgentAnswer)

    def failed(self, what: str) -> Failure:
        """A failure that quotes its log."""
        lines = processes.last_lines(self.state.agent_log, 8)
        return Failure(f"{what}; the end of {self.state.agent_log}:\n{lines}")


def command(state: StateDir, options: AgentOptions) -> list[str]:
    """The agent's command line."""
    words = [
        sys.executable,
        "-P",
        "-m",
        "glasslet.kubelet",
        f"--config={state.config}",
        f"--root-dir={state.root_dir}",
        f"--pod-manifest-path={options.manifests}",
        f"--container-runtime-endpoint={options.endpoint}",
        f"--v={options.verbosity}",
    ]
    return [*words, f"--hostname-override={options.hostname}"] if options.hostname else words


def configuration(options: AgentOptions, *, logs: Path) -> str:
    """A KubeletConfiguration: no API server; servers on loopback only, without access over the network."""
    import yaml

    fields = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "fileCheckFrequency": "1s",
        "podLogsDir": str(logs / "pods"),
        "healthzPort": options.healthz_port,
        "enableServer": options.port != 0,
        # ConfigMaps, Secrets and claims are in a folder that the agent reads.
        "featureGates": {"PreventStaticPodAPIReferences": False},
    }
    if options.names:
        fields |= {"clusterDNS": [options.names], "clusterDomain": "cluster.local"}
    if options.port:
        fields["port"] = options.port
    return str(yaml.safe_dump(fields, sort_keys=False))
