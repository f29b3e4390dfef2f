"""Credential provider plugins: who is asked, what is kept, what is shared. Quotes: behaviours.md §25."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.meta import ObjectMeta
from glasslet.api.pod_ref import pod_ref
from glasslet.concurrency.clock import LoopClock
from glasslet.config.credential_providers import CredentialProvider, TokenAttributes
from glasslet.config.duration import Duration
from glasslet.kubeapi.errors import NotFound
from glasslet.kubeapi.objects.tokens import TokenFor
from glasslet.record.events import Decided
from glasslet.record.recorder import working_for
from glasslet.record.store import Record
from glasslet.runtime.images.plugin_messages import CacheKey, PluginAnswer, PluginFailed, PluginQuestion
from glasslet.runtime.images.plugins import CredentialPlugin, CredentialPlugins
from glasslet.runtime.protocols import RegistryAuth
from tests.builders.podspec import pod_of
from tests.fakes.waits import WaitLog

pytestmark = pytest.mark.looptime

APP = "registry.example/team/app:1"


def login(user: str, password: str = "hunter2") -> RegistryAuth:
    return RegistryAuth(username=user, password=password)


class Script:
    """A plugin: answers by question, after a while."""

    def __init__(self, auths: dict[str, RegistryAuth] | None = None, key: CacheKey = CacheKey.IMAGE) -> None:
        self.answer: PluginAnswer | PluginFailed = PluginAnswer(
            cache_key=key, auths=auths or {"registry.example": login("ann")}
        )
        self.takes = 0.0
        self.asked: list[PluginQuestion] = []

    async def ask(self, question: PluginQuestion) -> PluginAnswer:
        self.asked.append(question)
        await asyncio.sleep(self.takes)
        if isinstance(self.answer, PluginFailed):
            raise self.answer
        return self.answer


class Accounts:
    """An API server with two service accounts."""

    def __init__(self) -> None:
        self.annotations = {"default": {"team": "blue", "other": "x"}, "plain": {}}
        self.wanted: list[TokenFor] = []

    async def account(self, namespace: str, name: str) -> ObjectMeta:
        if name not in self.annotations:
            raise NotFound("serviceaccounts", f'serviceaccounts "{name}" not found')
        return ObjectMeta(name=name, uid=f"uid-{name}", annotations=self.annotations[name])

    async def token(self, wanted: TokenFor) -> str:
        self.wanted.append(wanted)
        return f"token-of-{wanted.pod}"


def token_attributes(**changes: Any) -> TokenAttributes:
    fields: dict[str, Any] = {
        "service_account_token_audience": "registry",
        "cache_type": "ServiceAccount",
        "require_service_account": True,
    }
    return TokenAttributes(**{**fields, **changes})


class Node:
    def __init__(self, *scripts: Script, tokens: TokenAttributes | None = None, keep: str = "10m") -> None:
        self.record = Record(clock=LoopClock())
        self.accounts = Accounts()
        self.waits = WaitLog()
        self.plugins = CredentialPlugins(
            [
                CredentialPlugin(
                    provider=CredentialProvider(
                        name=f"plugin-{index}",
                        match_images=("*.example",),
                        default_cache_duration=Duration.parse(keep),
                        token_attributes=tokens,
                    ),
                    process=script,
                    accounts=self.accounts,
                    clock=LoopClock(),
                    recorder=self.record,
                )
                for index, script in enumerate(scripts)
            ]
        )

    async def users(self, image: str = APP, **pod: Any) -> list[str]:
        made = pod_of(**pod)
        return [auth.username for auth in await self.plugins.matching(made, image)]


async def test_only_plugins_for_the_image_are_asked_and_without_tag() -> None:
    # behaviours.md §25: "matchImages as in section 8"
    script = Script()
    node = Node(script)
    assert await node.users("other.registry.example.com/app") == []
    assert await node.users("busybox") == []
    assert await node.users("Not An Image") == []
    assert script.asked == []
    assert await node.users(APP) == ["ann"]
    assert [question.image for question in script.asked] == ["registry.example/team/app"]


# "All matching providers are asked ...; their entries are merged, earlier provider first."
async def test_answers_of_all_plugins_count_the_longest_key_first_then_in_their_order() -> None:
    first = Script({"registry.example": login("ann"), "elsewhere.example": login("no")})
    second = Script({"registry.example": login("bob"), "registry.example/team": login("carl")})
    assert await Node(first, second).users() == ["carl", "ann", "bob"]


# "Cache: ... null duration = defaultCacheDuration; 0 = not kept"
async def test_an_answer_without_duration_is_kept_as_long_as_configured() -> None:
    script = Script()
    node = Node(script, keep="1m")
    for _ in range(3):
        assert await node.users() == ["ann"]
    assert len(script.asked) == 1
    await asyncio.sleep(61)
    await node.users()
    assert len(script.asked) == 2


@pytest.mark.parametrize(("answered", "keep"), [(0.0, "10m"), (None, "0s")])
async def test_an_answer_for_no_time_is_not_kept(answered: float | None, keep: str) -> None:
    script = Script()
    script.answer = PluginAnswer(
        cache_key=CacheKey.GLOBAL, cache_seconds=answered, auths={"registry.example": login("ann")}
    )
    node = Node(script, keep=keep)
    await node.users()
    await node.users()
    assert len(script.asked) == 2


# "Parallel identical requests are merged."
async def test_pods_that_ask_the_same_share_one_run() -> None:
    script = Script()
    script.takes = 5.0
    node = Node(script)
    assert await asyncio.gather(*(node.users() for _ in range(3))) == [["ann"]] * 3
    assert len(script.asked) == 1


async def test_if_the_one_that_asked_is_cancelled_the_next_starts_over() -> None:
    script = Script()
    script.takes = 5.0
    node = Node(script)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(node.users())
        second = group.create_task(node.users())
        await asyncio.sleep(1)
        first.cancel()
    assert await second == ["ann"]
    assert len(script.asked) == 2


async def test_a_plugin_that_fails_leaves_the_others_and_the_reason_in_the_record() -> None:
    broken, good = Script(), Script({"registry.example": login("bob")})
    broken.answer = PluginFailed("exit status 3: no network")
    node = Node(broken, good)
    pod = pod_of()
    with working_for(pod_ref(pod)):
        assert await node.users() == ["bob"]
    log = node.record.of(pod_ref(pod).uid)
    assert log is not None
    told = {event.what: dict(event.inputs) for event in log.events if isinstance(event, Decided)}
    assert told["credential provider failed"]["why"] == "exit status 3: no network"
    assert told["credentials from provider"]["source"] == "plugin"
    # Failures are not kept: the next pull asks again.
    await node.users()
    assert len(broken.asked) == 2


# "tokenAttributes (...): audience, cacheType Token|ServiceAccount, requireServiceAccount, required/optional annotation
# keys."
async def test_the_plugin_gets_a_token_of_the_pod_and_the_annotations_it_wants() -> None:
    script = Script()
    tokens = token_attributes(
        required_service_account_annotation_keys=("team",), optional_service_account_annotation_keys=("absent",)
    )
    node = Node(script, tokens=tokens)
    assert await node.users(serviceAccountName="default") == ["ann"]
    (question,) = script.asked
    (wanted,) = node.accounts.wanted
    assert question.token == f"token-of-{wanted.pod}"
    assert question.annotations == {"team": "blue"}
    assert (wanted.audience, wanted.service_account, wanted.service_account_uid) == (
        "registry", "default", "uid-default",
    )  # fmt: skip


async def test_a_pod_whose_account_lacks_a_required_annotation_is_not_for_the_plugin() -> None:
    script = Script()
    node = Node(script, tokens=token_attributes(required_service_account_annotation_keys=("team",)))
    assert await node.users(serviceAccountName="plain") == []
    assert await node.users(serviceAccountName="gone") == []
    assert script.asked == []


async def test_a_pod_without_account_is_for_the_plugin_only_if_it_says_so() -> None:
    script = Script()
    assert await Node(script, tokens=token_attributes()).users() == []
    assert script.asked == []
    assert await Node(script, tokens=token_attributes(require_service_account=False)).users() == ["ann"]
    assert script.asked[0].token == ""


async def test_accounts_share_answers_only_if_the_plugin_says_so() -> None:
    for cache_type, runs in (("ServiceAccount", 1), ("Token", 2)):
        script = Script()
        node = Node(script, tokens=token_attributes(cache_type=cache_type))
        for name in ("one", "two"):
            pod = pod_of(serviceAccountName="default")
            pod = replace(pod, metadata=replace(pod.metadata, name=name))
            await node.plugins.matching(pod, APP)
        assert len(script.asked) == runs


# "With cacheType ServiceAccount a response that hands the token back as password is refused."
async def test_a_token_given_back_as_password_is_refused_unless_kept_by_token() -> None:
    for cache_type, users in (("ServiceAccount", []), ("Token", ["ann"])):
        script = Script()
        node = Node(script, tokens=token_attributes(cache_type=cache_type))
        pod = pod_of(serviceAccountName="default")
        script.answer = PluginAnswer(
            cache_key=CacheKey.IMAGE,
            auths={"registry.example": login("ann", f"token-of-{pod.metadata.name}")},
        )
        assert await node.users(serviceAccountName="default") == users
