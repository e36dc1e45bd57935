"""Builds the content blocks of a message: the prompt, and the attachments from `run --file` and `run --inline`."""

import asyncio
import mimetypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from footplate.client import AsyncFootplate, ClientError

DeliverMode = Literal["file", "inline"]


async def build_content(
    client: AsyncFootplate, prompt: str, files: Sequence[str], inline: Sequence[str], audience: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Returns the content of a message. Uploads local files first, for the audience of the session."""
    return [
        {"type": "text", "text": prompt},
        *[await _build_block(client, given, "file", audience) for given in files],
        *[await _build_block(client, given, "inline", audience) for given in inline],
    ]


async def _build_block(
    client: AsyncFootplate, reference: str, deliver: DeliverMode, audience: Mapping[str, str]
) -> dict[str, Any]:
    if reference.startswith(("http://", "https://")):
        kind, source = _guess_type(reference), {"type": "url", "url": reference}
    elif reference.startswith("file_") and not _path_exists(reference):
        file = await client.files.retrieve(reference)
        kind, source = file.mime_type, {"type": "file", "file_id": file.id}
    else:
        name, data = await asyncio.to_thread(_read_file, Path(reference))
        file = await client.files.upload(name, data, **audience)
        kind, source = file.mime_type, {"type": "file", "file_id": file.id}
    return {"type": "image" if kind.startswith("image/") else "document", "source": source, "deliver": deliver}


def _path_exists(path: str) -> bool:
    return os.path.lexists(path)


def _read_file(path: Path) -> tuple[str, bytes]:
    try:
        return path.name, path.read_bytes()
    except OSError as error:
        raise ClientError(
            f"{path} cannot be read: {error.strerror or error}.",
            help_text="Pass the path of a local file, a URL, or the ID of an uploaded file.",
        ) from error


def _guess_type(url: str) -> str:
    return mimetypes.guess_type(url.partition("?")[0])[0] or ""
