"""TokenReview (authentication.k8s.io/v1) and SubjectAccessReview (authorization.k8s.io/v1), as a node sends them."""

from __future__ import annotations

from glasslet.api.object import Object


class UserInfo(Object, frozen=True, kw_only=True):
    """`authentication/v1.UserInfo`."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class TokenReviewSpec(Object, frozen=True, kw_only=True):
    """`authentication/v1.TokenReviewSpec`; `repr` hides the token."""

    token: str = ""
    audiences: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "TokenReviewSpec()"


class TokenReviewStatus(Object, frozen=True, kw_only=True):
    """`authentication/v1.TokenReviewStatus`."""

    authenticated: bool = False
    user: UserInfo = UserInfo()
    audiences: tuple[str, ...] = ()
    error: str = ""


class TokenReview(Object, frozen=True, kw_only=True):
    """`authentication/v1.TokenReview`."""

    api_version: str = "authentication.k8s.io/v1"
    kind: str = "TokenReview"
    spec: TokenReviewSpec = TokenReviewSpec()
    status: TokenReviewStatus = TokenReviewStatus()


class ResourceAttributes(Object, frozen=True, kw_only=True):
    """`authorization/v1.ResourceAttributes`."""

    namespace: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""


class SubjectAccessReviewSpec(Object, frozen=True, kw_only=True):
    """`authorization/v1.SubjectAccessReviewSpec`."""

    resource_attributes: ResourceAttributes | None = None
    user: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}
    uid: str = ""


class SubjectAccessReviewStatus(Object, frozen=True, kw_only=True):
    """`authorization/v1.SubjectAccessReviewStatus`."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""
    evaluation_error: str = ""


class SubjectAccessReview(Object, frozen=True, kw_only=True):
    """`authorization/v1.SubjectAccessReview`."""

    api_version: str = "authorization.k8s.io/v1"
    kind: str = "SubjectAccessReview"
    spec: SubjectAccessReviewSpec = SubjectAccessReviewSpec()
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()
