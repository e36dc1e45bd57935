"""Builds the content blocks of a message from its prompt, `run --file` and `run --inline`."""

import asyncio
import mimetypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from footplate.client import AsyncFootplate, ClientError

Deliver = Literal["file", "inline"]


async def content(
    client: AsyncFootplate, prompt: str, files: Sequence[str], inline: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns the content of a message. Uploads local files first."""
    return [
        {"type": "text", "text": prompt},
        *[await _block(client, given, "file") for given in files],
        *[await _block(client, given, "inline") for given in inline],
    ]


async def _block(client: AsyncFootplate, given: str, deliver: Deliver) -> dict[str, Any]:
    if given.startswith(("http://", "https://")):
        kind, source = _type_by_name(given), {"type": "url", "url": given}
    elif given.startswith("file_") and not _exists(given):
        file = await client.files.retrieve(given)
        kind, source = file.mime_type, {"type": "file", "file_id": file.id}
    else:
        name, data = await asyncio.to_thread(_read, Path(given))
        file = await client.files.upload(name, data)
        kind, source = file.mime_type, {"type": "file", "file_id": file.id}
    return {"type": "image" if kind.startswith("image/") else "document", "source": source, "deliver": deliver}


def _exists(path: str) -> bool:
    return os.path.lexists(path)


def _read(path: Path) -> tuple[str, bytes]:
    try:
        return path.name, path.read_bytes()
    except OSError as error:
        raise ClientError(
            f"{path} cannot be read: {error.strerror or error}.",
            help_text="Pass the path of a local file, a URL, or the id of an uploaded file.",
        ) from error


def _type_by_name(url: str) -> str:
    return mimetypes.guess_type(url.partition("?")[0])[0] or ""
