"""Certificates of ClusterTrustBundles as one PEM text."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest

from glasslet.api.codec import convert
from glasslet.api.meta import LabelSelector
from glasslet.kubeapi.objects.trust_bundles import ClusterTrustBundle, ClusterTrustBundleSpec, selects, trust_anchors


def pem(data: bytes, *, width: int = 64) -> str:
    text = base64.b64encode(data).decode()
    lines = [text[i : i + width] for i in range(0, len(text), width)]
    return "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""])


def bundle(text: str) -> ClusterTrustBundle:
    return ClusterTrustBundle(spec=ClusterTrustBundleSpec(trust_bundle=text))


def test_each_certificate_is_there_once_whatever_its_form() -> None:
    one, other = b"a" * 100, b"b" * 100
    text = trust_anchors([bundle(f"noise\n{pem(other)}{pem(one)}"), bundle(pem(one, width=76))])
    assert text.decode() == pem(one) + pem(other)


def test_what_is_no_base64_is_left_out() -> None:
    broken = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n"
    assert trust_anchors([bundle(broken + pem(b"ok"))]).decode() == pem(b"ok")


def test_a_certificate_that_never_ends_hides_no_other_and_costs_no_time() -> None:
    began = time.perf_counter()
    text = trust_anchors([bundle("-----BEGIN CERTIFICATE-----\n" * 8000 + pem(b"ok"))])
    assert text.decode() == pem(b"ok")
    assert not trust_anchors([bundle("-----BEGIN CERTIFICATE-----\n" * 8000)])
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize(
    ("selector", "fit"),
    [
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Sometimes"}]}, False),
    ],
)
def test_labels_are_selected_as_the_selector_says(selector: dict[str, Any], fit: bool) -> None:
    assert selects(convert(selector, LabelSelector), {"app": "web"}) is fit
