"""CredentialProviderConfig: what is read, what is refused and in which words. Quotes: behaviours.md §25."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from glasslet.config.check import check
from glasslet.config.credential_providers import Found, read_credential_providers
from glasslet.config.machine import KERNEL_SETTINGS, MachineFacts

V1 = "kubelet.config.k8s.io/v1"
PLUGIN_V1 = "credentialprovider.kubelet.k8s.io/v1"
HEALTHY = MachineFacts(
    online_cpus=frozenset({0, 1}), numa_nodes=frozenset({0}), memory_bytes=2**31, kernel=dict(KERNEL_SETTINGS)
)


def provider(name: str = "ecr", **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "apiVersion": PLUGIN_V1,
        "matchImages": ["*.registry.example"],
        "defaultCacheDuration": "10m",
        **fields,
    }


def tokens(**fields: Any) -> dict[str, Any]:
    return {
        "serviceAccountTokenAudience": "registry",
        "cacheType": "Token",
        "requireServiceAccount": True,
        **fields,
    }


class Places:
    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.config = folder / "config.yaml"
        for name in ("ecr", "gcr", "acr"):
            self.plugin(name)

    def plugin(self, name: str, mode: int = 0o755) -> None:
        (self.bin / name).write_text("#!/bin/sh\n")
        (self.bin / name).chmod(mode)

    def write(self, *providers: dict[str, Any], version: str = V1, path: Path | None = None) -> bytes:
        text = json.dumps({"apiVersion": version, "kind": "CredentialProviderConfig", "providers": list(providers)})
        (path or self.config).write_text(text)
        return text.encode()

    def read(self, path: Path | None = None, *, gate: bool = True) -> Found:
        return read_credential_providers(str(path or self.config), str(self.bin), tokens=gate)

    def problems(self, *providers: dict[str, Any], gate: bool = True) -> list[str]:
        self.write(*providers)
        return list(self.read(gate=gate).problems)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


# "Config kinds CredentialProviderConfig kubelet.config.k8s.io v1, v1beta1, v1alpha1"
@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_all_three_versions_are_read(places: Places, version: str) -> None:
    places.write(
        provider(args=["-v"], env=[{"name": "REGION", "value": "x"}]), version=f"kubelet.config.k8s.io/{version}"
    )
    found = places.read()
    assert found.problems == ()
    (one,) = found.config.providers
    assert (one.name, one.match_images, one.args) == ("ecr", ("*.registry.example",), ("-v",))
    assert one.default_cache_duration == 600.0
    assert [(e.name, e.value) for e in one.env] == [("REGION", "x")]


# "a directory of .json/.yaml/.yml files (sorted, merged) is taken too"
def test_files_of_a_directory_count_in_the_order_of_their_names(places: Places, tmp_path: Path) -> None:
    folder = tmp_path / "conf.d"
    folder.mkdir()
    second = places.write(provider("gcr"), path=folder / "b.json")
    first = places.write(provider("ecr"), path=folder / "a.yml")
    third = places.write(provider("acr"), path=folder / "c.yaml")
    (folder / "notes.txt").write_text("{")
    (folder / "more.yaml").mkdir()
    found = places.read(folder)
    assert [p.name for p in found.config.providers] == ["ecr", "gcr", "acr"]
    hashed = hashlib.sha256(b"".join(len(d).to_bytes(8, "big") + d for d in (first, second, third)))
    assert found.config.hash == f"sha256:{hashed.hexdigest()}"


def test_a_directory_without_configuration_is_refused(places: Places, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (problem,) = places.read(empty).problems
    assert problem.startswith(f'no configuration files found in directory "{empty}"')


# "provider names must be unique"
def test_a_name_given_twice_is_refused(places: Places, tmp_path: Path) -> None:
    assert places.problems(provider(), provider()) == ['duplicate provider name "ecr" found in configuration file(s)']


# "Bin dir and executables must exist, else the kubelet exits."
def test_missing_directory_and_executables_are_told(places: Places, tmp_path: Path) -> None:
    places.plugin("data", 0o644)
    (places.bin / "folder").mkdir()
    assert places.problems(provider("gone"), provider("data"), provider("folder")) == [
        f"plugin binary executable {places.bin}/gone did not exist",
        f"error inspecting binary executable {places.bin}/data: it is no executable file",
        f"error inspecting binary executable {places.bin}/folder: it is no executable file",
    ]
    found = read_credential_providers(str(places.config), str(tmp_path / "nowhere"), tokens=True)
    assert found.problems == (f"plugin binary directory {tmp_path}/nowhere did not exist",)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": "a/b"}, "providers[0].name: Invalid value: \"a/b\": provider name cannot contain '/'"),
        ({"name": "a b"}, 'providers[0].name: Invalid value: "a b": provider name cannot contain spaces'),
        ({"name": ".."}, "providers[0].name: Invalid value: \"..\": provider name cannot be '..'"),
        ({"apiVersion": ""}, "providers[0].apiVersion: Required value"),
        ({"apiVersion": "v9"}, 'providers[0].apiVersion: Unsupported value: "v9": supported values: "credential'),
        ({"matchImages": []}, "providers[0].matchImages: Required value: at least 1 item in matchImages is required"),
        ({"matchImages": ["a.io:x/y"]}, 'providers[0].matchImages: Invalid value: "a.io:x/y": match image is invalid'),
        ({"matchImages": ["a b.io"]}, 'providers[0].matchImages: Invalid value: "a b.io": match image is invalid'),
        ({"matchImages": ["a.io/%zz"]}, 'providers[0].matchImages: Invalid value: "a.io/%zz": match image is invalid'),
        ({"defaultCacheDuration": None}, "providers[0].defaultCacheDuration: Required value"),
        ({"defaultCacheDuration": "-1s"}, 'providers[0].defaultCacheDuration: Invalid value: "-1s": must be greater'),
        ({"tokenAttributes": tokens(cacheType="")}, "providers[0].tokenAttributes.cacheType: Required value"),
        ({"tokenAttributes": tokens(cacheType="Pod")}, 'providers[0].tokenAttributes.cacheType: Unsupported value: "P'),
        (
            {"tokenAttributes": tokens(serviceAccountTokenAudience="")},
            "providers[0].tokenAttributes.serviceAccountTokenAudience: Required value",
        ),
        (
            {"tokenAttributes": tokens(requireServiceAccount=None)},
            "providers[0].tokenAttributes.requireServiceAccount: Required value",
        ),
        (
            {"tokenAttributes": tokens(requireServiceAccount=False, requiredServiceAccountAnnotationKeys=["a"])},
            "providers[0].tokenAttributes.requiredServiceAccountAnnotationKeys: Forbidden: requireServiceAccount",
        ),
        (
            {"tokenAttributes": tokens(optionalServiceAccountAnnotationKeys=["a b"])},
            'providers[0].tokenAttributes.optionalServiceAccountAnnotationKeys: Invalid value: "a b"',
        ),
        (
            {"tokenAttributes": tokens(optionalServiceAccountAnnotationKeys=["a", "a"])},
            'providers[0].tokenAttributes.optionalServiceAccountAnnotationKeys: Duplicate value: "a"',
        ),
        (
            {
                "tokenAttributes": tokens(
                    optionalServiceAccountAnnotationKeys=["a"], requiredServiceAccountAnnotationKeys=["a"]
                )
            },
            "providers[0].tokenAttributes: Invalid value: a: annotation keys cannot be both required and optional",
        ),
        (
            {"apiVersion": "credentialprovider.kubelet.k8s.io/v1beta1", "tokenAttributes": tokens()},
            "providers[0].tokenAttributes: Forbidden: tokenAttributes is only supported for credentialprovider.kubel",
        ),
    ],
)
def test_each_broken_rule_names_its_field(places: Places, change: dict[str, Any], problem: str) -> None:
    places.plugin("a b")
    (found,) = places.problems({**provider(), **change})
    assert found.startswith(problem)


def test_tokens_need_their_gate_and_version(places: Places) -> None:
    (problem,) = places.problems(provider(tokenAttributes=tokens()), gate=False)
    assert problem.startswith("providers[0].tokenAttributes: Forbidden: tokenAttributes is not supported when Kubelet")
    places.write(provider(tokenAttributes=tokens()), version="kubelet.config.k8s.io/v1beta1")
    (problem,) = places.read().problems
    assert 'unknown field "tokenAttributes"' in problem


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "kind: want CredentialProviderConfig"),
        ("[]", "want a map with apiVersion, kind and providers"),
        ("{", "invalid"),
        (f"{{apiVersion: {V1}, kind: KubeletConfiguration}}", "kind: want CredentialProviderConfig"),
        ("{apiVersion: v1, kind: CredentialProviderConfig}", f"apiVersion: want {V1} or "),
        (f"{{apiVersion: {V1}, kind: CredentialProviderConfig, provider: []}}", "unknown field `provider`"),
        (f"{{apiVersion: {V1}, kind: CredentialProviderConfig, providers: 3}}", "$.providers"),
        (
            f"{{apiVersion: {V1}, kind: CredentialProviderConfig, providers: [{{defaultCacheDuration: 10}}]}}",
            "$.providers[0].defaultCacheDuration",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(places: Places, text: str, told: str) -> None:
    places.config.write_text(text)
    (problem,) = places.read().problems
    assert problem.startswith(f'error decoding config "{places.config}": ')
    assert told in problem


def test_values_of_variables_are_not_shown(places: Places) -> None:
    places.write(provider(env=[{"name": "KEY", "value": "hunter2"}]))
    assert "hunter2" not in repr(places.read())


def test_the_kubelet_does_not_start_and_check_says_why(places: Places) -> None:
    places.write(provider("gone"))
    flags = [f"--image-credential-provider-config={places.config}", f"--image-credential-provider-bin-dir={places.bin}"]
    (problem,) = check(flags, machine=HEALTHY).problems
    assert problem.field == "--image-credential-provider-config"
    assert problem.message == f"plugin binary executable {places.bin}/gone did not exist"
    places.plugin("gone")
    assert check(flags, machine=HEALTHY).problems == ()
