"""Finds the objects that the remaining sessions need, from their logs and independently of the product's rules."""

import asyncio
import gzip
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import asyncpg

from bench.support.cluster import Cluster
from footplate.domain.files.pack_names import PACK_NAME
from footplate.domain.files.snapshots import SCRATCH_TREE, Snapshot
from footplate.trees.snapshots.packs import find_pack_chain

_ORGANISATION: Final = "default"
_NAMED: Final = re.compile(r'"(default/sesn_[^"]+)"')


def list_keys(objects: Path) -> set[str]:
    found = {str(path.relative_to(objects)) for path in objects.rglob("*") if path.is_file()}
    return found - {"cell"}


async def find_needed_objects(cluster: Cluster) -> set[str]:
    objects = cluster.directory / "data" / "objects"
    keys = await asyncio.to_thread(list_keys, objects)
    by_folder: dict[str, list[str]] = {}
    for key in keys:
        folder, _, name = key.rpartition("/")
        by_folder.setdefault(folder, []).append(name)
    connection = await asyncpg.connect(cluster.settings.database_url)
    try:
        found = await _find_needed_packs(connection, by_folder)
        for table in ("events", "entries"):
            for row in await connection.fetch(f"select object_key, body::text as body from {table}"):
                found |= {row["object_key"]} - {None}
                found.update(_NAMED.findall(row["body"] or ""))
        for row in await connection.fetch("select object_key from archives"):
            content = await asyncio.to_thread((objects / row["object_key"]).read_bytes)
            found |= {row["object_key"], *_NAMED.findall(gzip.decompress(content).decode())}
    finally:
        await connection.close()
    return found


async def _find_needed_packs(connection: asyncpg.Connection, by_folder: Mapping[str, Sequence[str]]) -> set[str]:
    found: set[str] = set()
    for session in await connection.fetch("select id, project_ids from sessions"):
        segments = await connection.fetch(
            "select owner, last_seq from stretches where session_id = $1 order by last_seq desc", session["id"]
        )
        owners = [(session["id"], 1 << 62), *((row["owner"], row["last_seq"]) for row in segments)]
        for tree in session["project_ids"] or [SCRATCH_TREE]:
            folders = [f"{_ORGANISATION}/{owner}/trees/{tree}" for owner, _ in owners]
            folders.append(f"{_ORGANISATION}/projects/{tree}/bases")
            folder_of_name = {name: folder for folder in reversed(folders) for name in by_folder.get(folder, ())}
            names = [name for folder in folders for name in by_folder.get(folder, ())]
            for owner, last in owners:
                rows = await connection.fetch(
                    "select number, files, apart from snapshots where session_id = $1 and tree = $2 and seq <= $3",
                    *(owner, tree, last),
                )
                single = [name for name in names if (match := PACK_NAME.fullmatch(name)) and match["steps"] is None]
                for row in rows:
                    for chosen in (single, names):  # merged packs are an addition to those of single steps
                        packs = find_pack_chain(chosen, row["number"], Snapshot(row["files"], row["apart"]))
                        found |= {f"{folder_of_name[name]}/{name}" for pack in packs for name in pack.names}
    return found
