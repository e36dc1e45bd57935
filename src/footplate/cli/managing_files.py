"""What the commands for files do."""

import sys
from pathlib import Path

from footplate.cli import tables
from footplate.cli.connection import talk
from footplate.cli.profiles import Server
from footplate.cli.views import print_json
from footplate.client import AsyncFootplate, File


def list_files(*, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[File]:
        return [file async for file in client.files.list(limit=100)]

    found = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([file.wire() for file in found])
    else:
        tables.files(found)


def upload(path: Path, *, expires: int | None, as_json: bool, profile: str | None) -> None:
    content = path.read_bytes()

    async def work(client: AsyncFootplate, _server: Server) -> File:
        return await client.files.upload(path.name, content, expires_in_seconds=expires)

    file = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(file.wire())
    else:
        print(file.id)


def get(file_id: str, *, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> None:
        async for piece in client.files.content(file_id):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()

    talk(work, profile=profile, as_json=False)


def remove(file_id: str, *, as_json: bool, profile: str | None) -> None:
    deleted = talk(lambda client, _: client.files.delete(file_id), profile=profile, as_json=as_json)
    if as_json:
        print_json([deleted.wire()])
    else:
        print(deleted.id)
