"""Environments from ConfigMaps, Secrets and services. Quotes: behaviours.md §21."""

from __future__ import annotations

import traceback
from typing import Any, TypeVar

import pytest

from glasslet.api.codec import convert
from glasslet.api.configdata import ConfigMap, Secret
from glasslet.kubeapi.errors import APIError, NotFound, Unavailable
from glasslet.kubeapi.objects.services import ServiceAddress
from glasslet.podspec.environment import environment
from glasslet.podspec.errors import ConfigError
from glasslet.podspec.object_environment import ObjectEnvironment, ResolvedEnvironment
from tests.builders.objects import config_map, secret, service
from tests.builders.podspec import container_request, pod_of

ObjectT = TypeVar("ObjectT")


class Objects:
    """Objects of namespace default."""

    def __init__(self) -> None:
        self.secrets = {"db": convert(secret("db", user="ann", password="hunter2"), Secret)}
        self.config_maps = {"settings": convert(config_map("settings", mode="fast", greeting="hi $(mode)"), ConfigMap)}
        self.error: APIError | None = None

    async def secret(self, namespace: str, name: str) -> Secret:
        return self._find(self.secrets, "secret", namespace, name)

    async def config_map(self, namespace: str, name: str) -> ConfigMap:
        return self._find(self.config_maps, "configmap", namespace, name)

    def _find(self, objects: dict[str, ObjectT], word: str, namespace: str, name: str) -> ObjectT:
        assert namespace == "default"
        if self.error is not None:
            raise self.error
        if name not in objects:
            raise NotFound(name, f'{word} "{name}" not found')
        return objects[name]


class Services:
    def __init__(self, *services: dict[str, Any], listed: bool = True) -> None:
        self.services = tuple(convert(one, ServiceAddress) for one in services)
        self.is_listed = listed

    def known(self) -> tuple[ServiceAddress, ...] | None:
        return self.services if self.is_listed else None

    async def listed(self) -> tuple[ServiceAddress, ...] | None:
        return self.known()


def key(name: str, source: str, key_: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "valueFrom": {f"{source}KeyRef": {"name": more.pop("of"), "key": key_, **more}}}


async def resolve(
    container: dict[str, Any],
    objects: Objects | None = None,
    services: Services | None = None,
    meta: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, str]:
    """The whole environment of the pod's container."""
    pod = pod_of(container, meta=meta, **spec)
    source = ObjectEnvironment(objects=objects or Objects(), services=services or Services())
    found = await source.resolve(pod, pod.spec.containers[0])
    return environment(
        container_request(pod, envs_from=found.envs_from, key_refs=found.key_refs, references_resolved=found.resolved)
    )


async def test_keys_of_both_kinds_are_read() -> None:
    env = [key("MODE", "configMap", "mode", of="settings"), key("PASSWORD", "secret", "password", of="db")]
    assert await resolve({"env": env}) == {"MODE": "fast", "PASSWORD": "hunter2"}


# "Precedence: services, then envFrom in order, then env in order (later wins)"
async def test_env_goes_before_env_from_and_that_before_services() -> None:
    objects = Objects()
    objects.config_maps["first"] = convert(config_map("first", WEB_SERVICE_HOST="1", both="1", mode="1"), ConfigMap)
    container = {
        "envFrom": [{"configMapRef": {"name": "first"}}, {"configMapRef": {"name": "settings"}}],
        "env": [{"name": "both", "value": "env"}],
    }
    found = await resolve(container, objects, Services(service("web", "10.96.0.2")))
    assert (found["WEB_SERVICE_HOST"], found["WEB_SERVICE_PORT"]) == ("1", "80")
    assert (found["both"], found["mode"]) == ("env", "fast")


# "$(NAME) in env values ...: replaced if defined earlier"
async def test_values_from_objects_can_be_referred_to_but_are_not_expanded_themselves() -> None:
    container = {
        "envFrom": [{"configMapRef": {"name": "settings"}}],
        "env": [{"name": "URL", "value": "$(mode)/$(greeting)"}],
    }
    found = await resolve(container)
    assert found["URL"] == "fast/hi $(mode)"
    assert found["greeting"] == "hi $(mode)"


# "envFrom prefix is prepended; keys are taken as they are (no name check, no event)"
async def test_prefix_is_put_before_keys_of_any_form() -> None:
    objects = Objects()
    objects.config_maps["odd"] = convert(config_map("odd", **{"a.b-c": "1", "2": "2"}), ConfigMap)
    found = await resolve({"envFrom": [{"prefix": "P_", "configMapRef": {"name": "odd"}}]}, objects)
    assert found == {"P_a.b-c": "1", "P_2": "2"}


# "Missing required key or object: CreateContainerConfigError; optional: variable not set."
@pytest.mark.parametrize(
    ("container", "message"),
    [
        ({"env": [key("E", "secret", "k", of="gone")]}, 'secret "gone" not found'),
        ({"env": [key("E", "configMap", "k", of="gone")]}, 'configmap "gone" not found'),
        ({"env": [key("E", "secret", "k", of="db")]}, "couldn't find key k in Secret default/db"),
        ({"env": [key("E", "configMap", "k", of="settings")]}, "couldn't find key k in ConfigMap default/settings"),
        ({"envFrom": [{"secretRef": {"name": "gone"}}]}, 'secret "gone" not found'),
        ({"envFrom": [{"configMapRef": {"name": "gone"}}]}, 'configmap "gone" not found'),
    ],
)
async def test_what_is_missing_holds_the_container_back_unless_it_is_optional(
    container: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as problem:
        await resolve(container)
    assert (problem.value.reason, problem.value.message) == ("CreateContainerConfigError", message)
    for entry in container.get("env", ()):
        next(iter(entry["valueFrom"].values()))["optional"] = True
    for entry in container.get("envFrom", ()):
        next(iter(entry.values()))["optional"] = True
    assert await resolve(container) == {}


async def test_optional_does_not_excuse_a_server_that_cannot_be_asked() -> None:
    objects = Objects()
    objects.error = Unavailable("Secret default/db", "failed to sync secret cache: timed out waiting for the condition")
    with pytest.raises(ConfigError, match="failed to sync secret cache"):
        await resolve({"env": [key("E", "secret", "k", of="db", optional=True)]}, objects)


async def test_what_is_no_text_is_refused_without_showing_it() -> None:
    objects = Objects()
    objects.secrets["raw"] = convert(secret("raw", key=b"hunter2\xff"), Secret)
    with pytest.raises(ConfigError, match="key key in Secret default/raw is not text") as problem:
        await resolve({"env": [key("E", "secret", "key", of="raw")]}, objects)
    assert "hunter2" not in "".join(traceback.format_exception(problem.value))


# "A non-static container start waits (fails and retries) until the services were listed once."
async def test_pods_of_the_api_wait_for_services_and_static_ones_do_not() -> None:
    with pytest.raises(ConfigError) as problem:
        await resolve({}, services=Services(listed=False))
    assert problem.value.message == "services have not yet been read at least once, cannot construct envvars"
    static = {"annotations": {"kubernetes.io/config.source": "file"}}
    assert await resolve({}, services=Services(listed=False), meta=static) == {}


async def test_service_links_can_be_switched_off() -> None:
    found = await resolve({}, services=Services(service("web", "10.96.0.2")), enableServiceLinks=False)
    assert found == {}


def test_values_do_not_show_in_repr() -> None:
    found = ResolvedEnvironment(envs_from=(("A", "hunter2"),), key_refs={0: "hunter2"})
    assert "hunter2" not in repr(found)
    assert "hunter2" not in repr(container_request(envs_from=found.envs_from, key_refs=found.key_refs))
