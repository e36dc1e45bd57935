"""Builds the content blocks of a message: the prompt, and the attachments from `--file`, `--inline` and `--url`."""

import asyncio
import mimetypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from footplate.client import AsyncFootplate, ClientError
from footplate.client.pagination import drop_none

DeliverMode = Literal["file", "inline"]
_FIRST_PROJECT = "project"
_PROJECT_ID_PREFIX = "proj_"


@dataclass(frozen=True, slots=True)
class MessageAttachments:
    """The attachments as they were given on the command line."""

    files: Sequence[str] = ()
    """Files for the session's working tree: paths, URLs, ids, or paths in a project of the session."""
    inline: Sequence[str] = ()
    """Files that are sent to the model, named like the others."""
    urls: Sequence[str] = ()
    """URLs that the model's provider fetches."""

    def __bool__(self) -> bool:
        return bool(self.files or self.inline or self.urls)


NO_ATTACHMENTS: Final = MessageAttachments()


async def build_content(
    client: AsyncFootplate, prompt: str, attachments: MessageAttachments, audience: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Returns the content of a message. Uploads local files first, for the audience of the session."""
    return [
        {"type": "text", "text": prompt},
        *[await _build_block(client, given, "file", audience) for given in attachments.files],
        *[await _build_block(client, given, "inline", audience) for given in attachments.inline],
        *[_build_url_block(given) for given in attachments.urls],
    ]


async def find_session_audience(client: AsyncFootplate, session_id: str) -> Mapping[str, str]:
    """Returns who can see a session, as fields of the API. Files for it are visible to the same people."""
    session = await client.sessions.retrieve(session_id)
    if session.visibility == "organisation":
        return {}
    return drop_none(visibility=session.visibility, team_id=session.team_id)


async def _build_block(
    client: AsyncFootplate, reference: str, deliver: DeliverMode, audience: Mapping[str, str]
) -> dict[str, Any]:
    project, colon, path = reference.partition(":")
    source: dict[str, Any]
    if reference.startswith(("http://", "https://")):
        source = {"type": "url", "url": reference}
    elif colon and project == _FIRST_PROJECT and not _path_exists(reference):
        source = {"type": "path", "path": path}
    elif colon and project.startswith(_PROJECT_ID_PREFIX) and not _path_exists(reference):
        source = {"type": "path", "path": path, "project_id": project}
    elif reference.startswith("file_") and not _path_exists(reference):
        source = {"type": "file", "file_id": reference}
    else:
        name, data = await asyncio.to_thread(_read_file, Path(reference))
        file = await client.files.upload(name, data, **audience)
        source = {"type": "file", "file_id": file.id}
    return {"type": "file", "source": source, "deliver": deliver}


def _build_url_block(url: str) -> dict[str, Any]:
    kind = mimetypes.guess_type(url.partition("?")[0])[0] or ""
    block_type = "image" if kind.startswith("image/") else "document"
    return {"type": block_type, "source": {"type": "url", "url": url}, "deliver": "url"}


def _path_exists(path: str) -> bool:
    return os.path.lexists(path)


def _read_file(path: Path) -> tuple[str, bytes]:
    try:
        return path.name, path.read_bytes()
    except OSError as error:
        raise ClientError(
            f"{path} cannot be read: {error.strerror or error}.",
            help_text="Pass the path of a local file, a URL, the ID of an uploaded file, or project:PATH.",
        ) from error
