"""Credential provider plugins: the choice of plugins for an image, their answers, and how long those are kept.

    plugins = CredentialPlugins([CredentialPlugin(provider=..., process=..., accounts=..., clock=..., recorder=...)])
    auths = await plugins.matching(pod, "registry.example/team/app:1")

A plugin that fails gives no credentials; the log and the pod's record have the reason. The pull goes on without.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from glasslet.api.pod import Pod
from glasslet.concurrency.clock import Clock
from glasslet.config.credential_providers import CredentialProvider
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.runtime.images.keyring import fits, keyring_of
from glasslet.runtime.images.plugin_cache import Account, PluginCache
from glasslet.runtime.images.plugin_messages import PluginAnswer, PluginFailed, PluginQuestion
from glasslet.runtime.images.plugin_service_account import NotForThisPod, PodAccount, ServiceAccounts, pod_account
from glasslet.runtime.images.reference import InvalidImageName, parse_image_name
from glasslet.runtime.protocols import AuthSource, RegistryAuth

logger = logging.getLogger(__name__)

Auths = Mapping[str, RegistryAuth]


class Process(Protocol):
    """Runs the plugin (`plugin_process`)."""

    async def ask(self, question: PluginQuestion) -> PluginAnswer:
        """Raises PluginFailed."""


class CredentialPlugin:
    """One plugin with its cache. Equal requests at the same time share one run."""

    def __init__(
        self,
        *,
        provider: CredentialProvider,
        process: Process,
        accounts: ServiceAccounts | None,
        clock: Clock,
        recorder: Recorder,
    ) -> None:
        self._provider = provider
        self._process = process
        self._accounts = accounts
        self._clock = clock
        self._recorder = recorder
        self._cache = PluginCache()
        self._under_way: dict[tuple[object, ...], asyncio.Future[PluginAnswer | PluginFailed | None]] = {}

    async def credentials(self, pod: Pod, image: str) -> Auths:
        """Credentials by pattern of images; none if the plugin is not for this image or pod, or fails. `image` in
        normal form, without tag."""
        if not any(fits(pattern, image) for pattern in self._provider.match_images):
            return {}
        name, decided = self._provider.name, self._recorder.decided
        try:
            account = await self._account(pod)
            auths, source = await self._from(account, image)
        except NotForThisPod as reason:
            decided("credential provider not asked", plugin=name, image=image, why=str(reason))
            return {}
        except PluginFailed as problem:
            decided("credential provider failed", plugin=name, image=image, why=str(problem))
            logger.error(
                "credential provider failed",
                extra={"plugin": name, "image": image, "error": str(problem)},
            )
            return {}
        decided("credentials from provider", plugin=name, image=image, source=source, patterns=len(auths))
        if account is None:
            return auths
        owner = AuthSource(kind="ServiceAccount", uid=account.uid, namespace=account.namespace, name=account.name)
        return {pattern: replace(auth, source=owner) for pattern, auth in auths.items()}

    async def _account(self, pod: Pod) -> PodAccount | None:
        wanted = self._provider.token_attributes
        return None if wanted is None else await pod_account(pod, wanted, self._accounts)

    async def _from(self, account: PodAccount | None, image: str) -> tuple[Auths, str]:
        """Credentials and where they are from. Raises PluginFailed."""
        wanted = self._provider.token_attributes
        key: Account = () if account is None or wanted is None else account.cache_key(wanted.cache_type)
        kept = self._cache.get(image, key, self._clock.monotonic())
        if kept is not None:
            return kept, "cache"
        question = PluginQuestion(image=image)
        if account is not None:
            question = PluginQuestion(image=image, token=account.token, annotations=account.annotations)
        answer = await self._ask(question)
        if wanted is not None and wanted.cache_type != "Token" and question.token:
            _refuse_echo(answer, question.token)
        self._keep(answer, image, key)
        return answer.auths, "plugin"

    def _keep(self, answer: PluginAnswer, image: str, account: Account) -> None:
        seconds = answer.cache_seconds
        if seconds is None:
            seconds = float(self._provider.default_cache_duration or 0)
        if seconds > 0:
            until = self._clock.monotonic() + seconds
            self._cache.put(answer.cache_key, image, account, answer.auths, until)

    async def _ask(self, question: PluginQuestion) -> PluginAnswer:
        """Runs the plugin, or waits for the run of an equal request. If that is cancelled, the next one runs it."""
        key = (question.image, question.token, tuple(sorted(question.annotations.items())))
        while (other := self._under_way.get(key)) is not None:
            on = f"credential provider {self._provider.name}, asked for {question.image} by another pod"
            with self._recorder.wait(WaitKind.CREDENTIALS, on=on):
                outcome = await asyncio.shield(other)
            if isinstance(outcome, PluginFailed):
                raise PluginFailed(str(outcome))
            if outcome is not None:
                return outcome
        return await self._lead(key, question)

    async def _lead(self, key: tuple[object, ...], question: PluginQuestion) -> PluginAnswer:
        done: asyncio.Future[PluginAnswer | PluginFailed | None] = asyncio.get_running_loop().create_future()
        self._under_way[key] = done
        outcome: PluginAnswer | PluginFailed | None = None
        try:
            outcome = await self._process.ask(question)
            return outcome
        except PluginFailed as problem:
            outcome = problem
            raise
        finally:
            del self._under_way[key]
            done.set_result(outcome)


class CredentialPlugins:
    """All plugins of the node, in the order of the configuration."""

    def __init__(self, plugins: Sequence[CredentialPlugin] = ()) -> None:
        self._plugins = tuple(plugins)

    async def matching(self, pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
        """Credentials for the image, the best first; those of an earlier plugin come before equal ones of a later."""
        if not self._plugins:
            return ()
        try:
            repository = parse_image_name(image).repository
        except InvalidImageName:
            return ()
        configs = [await plugin.credentials(pod, repository) for plugin in self._plugins]
        return keyring_of(configs).matching(repository)


def _refuse_echo(answer: PluginAnswer, token: str) -> None:
    """A token is good for one pod: given back as the password it must not be kept for the whole account."""
    if any(auth.password == token for auth in answer.auths.values()):
        raise PluginFailed(
            "the plugin returned the service account token as the password, "
            "which is not allowed when the cache type is not Token"
        )
