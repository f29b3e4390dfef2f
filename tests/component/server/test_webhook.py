"""The API server as judge: what is asked, kept, shared and tried again; in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Any

import pytest

from glasslet.concurrency.clock import LoopClock
from glasslet.kubeapi.errors import APIError, Forbidden, Throttled, Unavailable
from glasslet.record.store import Record
from glasslet.server.access.authorization import AuthorizationError
from glasslet.server.access.users import Attributes, User
from glasslet.server.access.webhook import ReviewError, Reviews, WebhookAuthorizer, WebhookReviewer, worth_another_try
from tests.fakes.api_server import FakeAPIServer

pytestmark = pytest.mark.looptime

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
ALICE = User("alice", ("team",), "u-1", {"k": ("v",)})


@dataclass
class Counted:
    tokens: list[str] = field(default_factory=list)
    accesses: list[str] = field(default_factory=list)

    def token_review(self, code: str, seconds: float) -> None:
        self.tokens.append(code)

    def access_review(self, code: str, seconds: float) -> None:
        self.accesses.append(code)


class Judge:
    """The API server's opinions, and the clients that ask for them."""

    def __init__(self) -> None:
        self.server = FakeAPIServer(clock=LoopClock())
        self.metrics = Counted()
        self.record = Record()
        self.status: dict[str, Any] = {"allowed": True}
        self.server.answer("POST", TOKENS + "$", self._token)
        self.server.answer("POST", ACCESS + "$", lambda path, body: {**body, "status": self.status})
        reviews = Reviews(client=self.server, metrics=self.metrics, recorder=self.record, clock=LoopClock())
        self.reviewer = WebhookReviewer(reviews=reviews, ttl=120.0)
        self.authorizer = WebhookAuthorizer(reviews=reviews, allowed_ttl=300.0, denied_ttl=30.0)

    def _token(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        match body["spec"]["token"]:
            case "good":
                user = {"username": "alice", "uid": "u-1", "groups": ["team"], "extra": {"k": ["v"]}}
                return {**body, "status": {"authenticated": True, "user": user}}
            case str(token) if token.startswith("strange"):
                return {**body, "status": {"error": "token lookup failed"}}
            case str(token) if token.startswith("valid"):
                return {**body, "status": {"authenticated": True, "user": {"username": token}}}
            case _:
                return {**body, "status": {}}

    def asked(self) -> int:
        return len(self.server.requests)


@pytest.fixture
def judge() -> Judge:
    return Judge()


def attempt(path: str = "/pods", user: User = ALICE) -> Attributes:
    return Attributes(user, "get", "node-1", "proxy", path)


async def test_good_token_names_its_user(judge: Judge) -> None:
    assert await judge.reviewer.review("good", "10.1.2.3") == ALICE


async def test_bad_token_is_nobody(judge: Judge) -> None:
    assert await judge.reviewer.review("bad", "10.1.2.3") is None


@pytest.mark.parametrize("token", ["good", "bad"])
async def test_token_is_asked_for_once_in_its_time(judge: Judge, token: str) -> None:
    # config-fields.md: "authentication.webhook.cacheTTL ... 2m0s ... Cache time of token reviews"
    await judge.reviewer.review(token, "10.1.2.3")
    await asyncio.sleep(119)
    await judge.reviewer.review(token, "10.1.2.3")
    assert judge.asked() == 1
    await asyncio.sleep(2)
    await judge.reviewer.review(token, "10.1.2.3")
    assert judge.asked() == 2


async def test_error_of_a_review_is_not_kept(judge: Judge) -> None:
    for _ in range(2):
        with pytest.raises(ReviewError, match="token lookup failed"):
            await judge.reviewer.review("strange", "10.1.2.3")
    assert judge.asked() == 2


async def test_no_time_means_no_cache() -> None:
    judge = Judge()
    reviews = Reviews(client=judge.server, metrics=judge.metrics, recorder=judge.record, clock=LoopClock())
    reviewer = WebhookReviewer(reviews=reviews, ttl=0.0)
    await reviewer.review("good", "10.1.2.3")
    await reviewer.review("good", "10.1.2.3")
    assert judge.asked() == 2


async def test_same_question_at_the_same_time_is_asked_once(judge: Judge) -> None:
    judge.server.latency = 5.0
    users = await asyncio.gather(*(judge.reviewer.review("good", "10.1.2.3") for _ in range(20)))
    assert (users, judge.asked()) == ([ALICE] * 20, 1)


async def test_who_shares_a_question_survives_the_one_who_asked(judge: Judge) -> None:
    judge.server.latency = 5.0
    async with asyncio.TaskGroup() as group:
        first = group.create_task(judge.reviewer.review("good", "10.1.2.3"))
        await asyncio.sleep(1)
        second = group.create_task(judge.reviewer.review("good", "10.1.2.3"))
        await asyncio.sleep(1)
        first.cancel()
    assert second.result() == ALICE


async def test_cancelled_sharer_disturbs_nobody(judge: Judge) -> None:
    judge.server.latency = 5.0
    async with asyncio.TaskGroup() as group:
        first = group.create_task(judge.reviewer.review("good", "10.1.2.3"))
        await asyncio.sleep(1)
        second = group.create_task(judge.reviewer.review("good", "10.1.2.3"))
        await asyncio.sleep(1)
        second.cancel()
    assert (first.result(), second.cancelled(), judge.asked()) == (ALICE, True, 1)


async def test_shared_failure_reaches_all(judge: Judge) -> None:
    judge.server.latency = 1.0
    judge.server.fail_next(Forbidden, times=1)
    ends = await asyncio.gather(*(judge.reviewer.review("good", "10.1.2.3") for _ in range(3)), return_exceptions=True)
    assert [type(end) for end in ends] == [ReviewError] * 3


async def test_many_tokens_cost_bounded_memory(judge: Judge) -> None:
    for number in range(5000):
        await judge.reviewer.review(f"token-{number}", f"10.0.{number // 250}.{number % 250}")
    assert len(judge.reviewer._cache) <= 4096
    await judge.reviewer.review("token-4999", "10.1.2.3")
    assert judge.asked() == 5000


async def test_token_is_nowhere_in_the_cache_or_the_record(judge: Judge) -> None:
    await judge.reviewer.review("good-secret-token", "10.1.2.3")
    assert "good-secret-token" not in repr(vars(judge.reviewer._cache))
    judge.server.fail_next(Unavailable, times=9)
    with pytest.raises(ReviewError) as refused:
        await judge.reviewer.review("other-secret-token", "10.1.2.3")
    assert "secret-token" not in str(refused.value)


async def test_attempt_is_asked_for_as_a_subresource_of_this_node(judge: Judge) -> None:
    assert await judge.authorizer.allows(attempt())
    assert judge.server.requests[0].body["spec"] == {
        "user": "alice",
        "uid": "u-1",
        "groups": ["team"],
        "extra": {"k": ["v"]},
        "resourceAttributes": {
            "verb": "get",
            "version": "v1",
            "resource": "nodes",
            "subresource": "proxy",
            "name": "node-1",
        },
    }


@pytest.mark.parametrize(("allowed", "seconds"), [(True, 300), (False, 30)])
async def test_answers_are_kept_for_their_time(judge: Judge, allowed: bool, seconds: int) -> None:
    # config-fields.md: "authorization.webhook.cacheAuthorizedTTL ... 5m0s", "cacheUnauthorizedTTL ... 30s"
    judge.status = {"allowed": allowed}
    assert await judge.authorizer.allows(attempt()) is allowed
    await asyncio.sleep(seconds - 1)
    await judge.authorizer.allows(attempt("/exec/a/b/c"))
    assert judge.asked() == 1
    await asyncio.sleep(2)
    await judge.authorizer.allows(attempt())
    assert judge.asked() == 2


async def test_other_user_is_another_question(judge: Judge) -> None:
    await judge.authorizer.allows(attempt())
    judge.status = {}
    assert not await judge.authorizer.allows(attempt(user=User("mallory", ("team",))))


async def test_answer_that_contradicts_itself_is_an_error(judge: Judge) -> None:
    judge.status = {"allowed": True, "denied": True}
    with pytest.raises(AuthorizationError):
        await judge.authorizer.allows(attempt())


async def test_enormous_user_is_judged_each_time(judge: Judge) -> None:
    huge = attempt(user=User("alice", tuple(f"group-{number}" for number in range(2000))))
    await judge.authorizer.allows(huge)
    await judge.authorizer.allows(huge)
    assert judge.asked() == 2


async def test_busy_server_is_asked_again(judge: Judge) -> None:
    judge.server.fail_next(Throttled, times=4)
    assert await judge.reviewer.review("good", "10.1.2.3") == ALICE
    assert judge.metrics.tokens == ["429"] * 4 + ["201"]
    assert 4.0 < asyncio.get_running_loop().time() < 6.0


async def test_absent_server_is_told_soon(judge: Judge) -> None:
    judge.server.down = True
    with pytest.raises(AuthorizationError):
        await judge.authorizer.allows(attempt())
    assert asyncio.get_running_loop().time() < 1.0
    assert judge.asked() == 2


async def test_silent_server_is_given_up(judge: Judge) -> None:
    judge.server.latency = 1000.0
    with pytest.raises(ReviewError, match="30 s"):
        await judge.reviewer.review("good", "10.1.2.3")


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (Throttled("r", "m", retry_after=1.0), True),
        (Unavailable("r", "m", code=500), True),
        (Unavailable("r", "m", code=504), True),
        (Unavailable("r", "m", code=503), False),
        (Forbidden("r", "m", code=403), False),
    ],
)
async def test_only_passing_troubles_are_worth_another_try(error: APIError, again: bool) -> None:
    assert worth_another_try(error, 3) is again


async def test_tokens_in_bulk_from_one_source_are_few_requests_to_the_api_server(judge: Judge) -> None:
    for number in range(2000):
        with contextlib.suppress(ReviewError):
            await judge.reviewer.review(f"guess-{number}", "192.0.2.66")
    assert judge.asked() <= 31


async def test_tokens_that_the_server_cannot_judge_are_paid_for_as_well(judge: Judge) -> None:
    for number in range(200):
        with pytest.raises(ReviewError):
            await judge.reviewer.review(f"strange-{number}", "192.0.2.66")
    assert judge.asked() <= 31


@pytest.mark.parametrize("trouble", [Unavailable, Throttled])
async def test_tokens_in_bulk_while_the_api_server_is_in_trouble_are_few_requests(
    judge: Judge, trouble: type[APIError]
) -> None:
    judge.server.fail_next(trouble, times=100_000)

    async def guesser(name: int) -> None:
        for number in range(50):
            with contextlib.suppress(ReviewError):
                await judge.reviewer.review(f"guess-{name}-{number}", "192.0.2.66")

    await asyncio.gather(*(guesser(name) for name in range(30)))
    # webhook.py: 30 at once, one more each second; 5 tries
    reviews = 30 + asyncio.get_running_loop().time()
    assert judge.asked() <= 5 * (reviews + 1)


async def test_guesses_of_one_source_hold_up_neither_others_nor_known_tokens(judge: Judge) -> None:
    assert await judge.reviewer.review("good", "192.0.2.66") == ALICE
    for number in range(100):
        with contextlib.suppress(ReviewError):
            await judge.reviewer.review(f"guess-{number}", "192.0.2.66")
    assert await judge.reviewer.review("good", "192.0.2.66") == ALICE
    assert await judge.reviewer.review("another", "192.0.2.7") is None


async def test_a_source_may_guess_again_after_a_while(judge: Judge) -> None:
    for number in range(40):
        with contextlib.suppress(ReviewError):
            await judge.reviewer.review(f"guess-{number}", "192.0.2.66")
    await asyncio.sleep(2)
    assert await judge.reviewer.review("fresh", "192.0.2.66") is None


async def test_good_tokens_cost_a_source_nothing(judge: Judge) -> None:
    for number in range(100):
        assert await judge.reviewer.review(f"valid-{number}", "192.0.2.7") == User(f"valid-{number}")


async def test_review_of_a_client_that_leaves_is_paid_for(judge: Judge) -> None:
    judge.server.latency = 0.01
    for number in range(100):
        review = asyncio.create_task(judge.reviewer.review(f"guess-{number}", "10.1.2.3"))
        await asyncio.sleep(0.005)
        review.cancel()
        await asyncio.gather(review, return_exceptions=True)
    # webhook.py: 30 at once, one more each second
    assert judge.asked() == 30
