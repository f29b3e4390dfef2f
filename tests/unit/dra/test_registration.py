"""Which service of a plugin is called."""

from __future__ import annotations

from glasslet.dra.registration import choose_service


def test_the_first_of_the_plugins_own_list_is_chosen() -> None:
    assert choose_service(["v1beta1.DRAPlugin", "v1.DRAPlugin"]) == ("v1beta1.DRAPlugin", "")
    assert choose_service(["v2.DRAPlugin", "v1.DRAPlugin"]) == ("v1.DRAPlugin", "")


def test_a_plugin_without_a_known_service_is_told_both_lists() -> None:
    assert choose_service([]) == ("", "empty list of supported gRPC services (aka supported versions)")
    both = '(["v1alpha1.DRAResourceHealth" "v9.X"]) are supported by the kubelet (["v1.DRAPlugin" "v1beta1.DRAPlugin"])'
    text = f"none of services supported by the plugin {both}"
    assert choose_service(["v1alpha1.DRAResourceHealth", "v9.X"]) == ("", text)
