"""Copies of an object store: into a directory, again after changes, and back into an empty bucket of a real server."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bench.support.host_loss.seaweedfs import SeaweedServer

from footplate.store.object_store import Objects
from footplate.store.retention.object_backup import copy_objects
from footplate.store.retention.object_gc import CELL_OBJECT, OtherCell

pytestmark = pytest.mark.timing

CONTENTS = {
    "default/sesn_1/body_1.json": b"{}",
    "default/sesn_1/trees/scratch/a.pack": os.urandom(6_000_000),
    "default/files/file_1/0": b"",
    CELL_OBJECT: b"one",
}


@pytest.fixture
async def bucket(tmp_path: Path) -> AsyncIterator[Objects]:
    server = SeaweedServer(tmp_path / "s3")
    await server.start()
    store = server.open_store()
    await store.delete_async("ready")
    yield Objects(store)
    await server.stop()


def open_directory(path: Path) -> Objects:
    path.mkdir(exist_ok=True)
    return Objects.open(path.as_uri(), path)


async def read_all(objects: Objects) -> dict[str, bytes]:
    return {
        one.key: b"".join([piece async for piece in objects.read_chunks(one.key)])
        async for batch in objects.list_all()
        for one in batch
    }


async def test_a_backup_only_adds_and_an_empty_bucket_gets_all_of_it(bucket: Objects, tmp_path: Path) -> None:
    source, backup = open_directory(tmp_path / "objects"), open_directory(tmp_path / "backup of ö")
    for key, content in CONTENTS.items():
        await source.create(key, content)
    first = await copy_objects(source, backup)
    assert (first.copied, first.present) == (len(CONTENTS), 0)
    assert first.copied_bytes == sum(map(len, CONTENTS.values()))

    await source.delete_object("default/sesn_1/body_1.json")
    await source.create("default/sesn_2/body_2.json", b"[]")
    second = await copy_objects(source, backup)
    assert (second.copied, second.present) == (1, len(CONTENTS) - 1)

    await copy_objects(backup, bucket)
    assert await read_all(bucket) == {**CONTENTS, "default/sesn_2/body_2.json": b"[]"}
    again = await copy_objects(backup, bucket)
    assert (again.copied, again.present) == (0, len(CONTENTS) + 1)


async def test_an_object_that_is_written_again_and_an_incomplete_copy_are_replaced(tmp_path: Path) -> None:
    source, backup = open_directory(tmp_path / "objects"), open_directory(tmp_path / "backup")
    for key in ("same-length", "cut"):
        await source.create(key, b"old")
    await copy_objects(source, backup)
    (tmp_path / "objects" / "same-length").write_bytes(b"new")
    (tmp_path / "backup" / "cut").write_bytes(b"o")
    report = await copy_objects(source, backup)
    assert (report.copied, report.present) == (2, 0)
    assert await read_all(backup) == {"same-length": b"new", "cut": b"old"}


async def test_objects_of_another_cell_are_refused(tmp_path: Path) -> None:
    source, backup = open_directory(tmp_path / "objects"), open_directory(tmp_path / "backup")
    await source.create(CELL_OBJECT, b"one")
    await backup.create(CELL_OBJECT, b"two")
    await source.create("default/sesn_1/body_1.json", b"{}")
    with pytest.raises(OtherCell):
        await copy_objects(source, backup)
    assert await read_all(backup) == {CELL_OBJECT: b"two"}
