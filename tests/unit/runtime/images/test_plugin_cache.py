"""How long and for what a plugin's credentials are kept. Quotes: behaviours.md §25."""

from __future__ import annotations

from glasslet.runtime.images.plugin_cache import PluginCache
from glasslet.runtime.images.plugin_messages import CacheKey
from glasslet.runtime.protocols import RegistryAuth

AUTHS = {"a.example": RegistryAuth(username="ann")}
APP = "a.example:5000/team/app"


# "Cache: looked up by image, registry, global (plus service account key)"
def test_the_kind_of_key_says_for_which_images_an_answer_is_good() -> None:
    others = (APP, "a.example:5000/team/other", "b.example/app")
    expected = {CacheKey.IMAGE: 1, CacheKey.REGISTRY: 2, CacheKey.GLOBAL: 3}
    for kind, good in expected.items():
        cache = PluginCache()
        cache.put(kind, APP, (), AUTHS, 10)
        found = [cache.get(image, (), 5) for image in others]
        assert found == [AUTHS] * good + [None] * (3 - good)


def test_an_answer_for_the_image_comes_before_one_for_all() -> None:
    cache = PluginCache()
    cache.put(CacheKey.GLOBAL, APP, (), {}, 10)
    cache.put(CacheKey.IMAGE, APP, (), AUTHS, 10)
    assert cache.get(APP, (), 5) == AUTHS


def test_an_answer_for_one_account_is_none_for_another() -> None:
    cache = PluginCache()
    cache.put(CacheKey.GLOBAL, APP, ("default", "builder"), AUTHS, 10)
    assert cache.get(APP, ("default", "builder"), 5) == AUTHS
    assert cache.get(APP, ("default", "default"), 5) is None
    assert cache.get(APP, (), 5) is None


def test_nothing_is_given_after_its_time() -> None:
    cache = PluginCache()
    cache.put(CacheKey.IMAGE, APP, (), AUTHS, 10)
    assert cache.get(APP, (), 10) == AUTHS
    assert cache.get(APP, (), 10.1) is None


# "purge every 15 min"
def test_what_is_over_is_dropped_every_quarter_of_an_hour() -> None:
    cache = PluginCache()
    cache.put(CacheKey.IMAGE, APP, (), AUTHS, 10)
    cache.put(CacheKey.IMAGE, "b.example/x", (), AUTHS, 2000)
    cache.get("c.example/x", (), 900)
    assert len(cache) == 2
    cache.get("c.example/x", (), 901)
    assert len(cache) == 1
