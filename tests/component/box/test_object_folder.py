"""The objects of a folder, as the agent reads them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from glasslet.api.configdata import Secret
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import NotDecoded, NotFound, Unavailable
from glasslet.kubeapi.objects.folder import MAX_BYTES, ObjectFolder

DB = paths.namespaced("shop", "secrets", "db")


class AtOnce:
    """Runs reads where they are asked for."""

    async def run(self, call: partial[bytes], *, on: str) -> bytes:
        return call()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / DB.lstrip("/")
    made.parent.mkdir(parents=True)
    return made


async def test_an_object_is_read_as_it_is_now(tmp_path: Path, file: Path) -> None:
    folder = ObjectFolder(tmp_path, AtOnce())
    for value in ("d29yZA==", "b3RoZXI="):
        file.write_text(f'{{"metadata": {{"name": "db"}}, "data": {{"password": "{value}"}}}}')
        assert (await folder.get(DB, Secret)).data["password"] == {"d29yZA==": b"word", "b3RoZXI=": b"other"}[value]


async def test_an_object_that_is_not_there_is_named_as_an_api_server_does(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match='secrets "db" not found'):
        await ObjectFolder(tmp_path, AtOnce()).get(DB, Secret)


async def test_no_name_leads_out_of_the_folder(tmp_path: Path, file: Path) -> None:
    (tmp_path.parent / "db").write_text("{}")
    for name in ("../../../../../../db", "..", "."):
        with pytest.raises(NotFound):
            await ObjectFolder(tmp_path, AtOnce()).get(paths.namespaced("shop", "secrets", name), Secret)


async def test_a_damaged_object_is_told_without_its_value(tmp_path: Path, file: Path) -> None:
    file.write_text('{"data": {"password": "hidden word"}}')
    with pytest.raises(NotDecoded) as caught:
        await ObjectFolder(tmp_path, AtOnce()).get(DB, Secret)
    assert "hidden" not in str(caught.value)


async def test_a_file_that_is_too_long_is_not_read(tmp_path: Path, file: Path) -> None:
    file.write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(Unavailable, match="more than"):
        await ObjectFolder(tmp_path, AtOnce()).get(DB, Secret)
