"""Prepares the attachments of a turn's inputs: fetches them, and inlines them or writes them to files.

This happens right before the input is added to the conversation, not at the start of the turn. A later attempt
therefore fetches nothing again. An attachment always has the same path, so writing it twice is harmless.
"""

import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final

from footplate.domain import parts
from footplate.domain.agents import ResolvedConfig
from footplate.domain.json import JsonObject
from footplate.domain.parts import Inline, NotTaken, Part, PartFailed, Sources
from footplate.domain.ports import Environment
from footplate.domain.running import Claim

_ABSENT: Final = 'for path; do [ -e "$path" ] || printf "%s\\0" "$path"; done'
_UNREAD: Final = "This worker cannot read the file {!r}: it has no file store."


class NoSources:
    """Refuses all attachments that are not in the input itself. Used if no sources are configured."""

    async def size(self, organisation: str, file_id: str) -> int:
        del organisation
        raise PartFailed(_UNREAD.format(file_id))

    async def file(self, organisation: str, file_id: str) -> Part:
        del organisation
        raise PartFailed(_UNREAD.format(file_id))

    async def url(self, url: str) -> Part:
        raise PartFailed(f"This worker cannot fetch {url}.")


class TurnInputs:
    def __init__(
        self,
        sources: Sources,
        organisation: str,
        config: ResolvedConfig,
        environment: Environment,
        written: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_file_written` is called after each file that is written to the tree."""
        self._written = written
        self._sources = sources
        self._organisation = organisation
        self._config = config
        self._environment = environment

    async def resolve(self, blocks: Sequence[JsonObject]) -> list[JsonObject]:
        """Prepare the blocks for the model. Raises `Permanent` if an attachment cannot be loaded or is not accepted."""
        inline = parts.Inline()
        return [await self._block(block, inline) for block in blocks]

    async def resolve_steering(self, blocks: Sequence[JsonObject]) -> list[JsonObject]:
        """Prepare the blocks of a steering message. A text replaces an attachment that failed."""
        inline, found = parts.Inline(), []
        for block in blocks:
            try:
                found.append(await self._block(block, inline))
            except (PartFailed, NotTaken) as error:
                found.append(parts.missing(error, block))
        return found

    async def mount(
        self, claim: Claim, last_completed: Callable[[Claim], Awaitable[datetime | None]]
    ) -> list[JsonObject]:
        """Write the session's resource files that are missing in its tree. Existing files are not changed. Returns
        messages for the model.

        A file that an earlier turn had and that no longer exists is skipped: it was deleted on purpose in both places.
        A fork continues without a missing file of its parent, and reports it to the model once.
        """
        places = {str(resource["mount_path"]): resource for resource in claim.resources}
        if not places:
            return []
        looked = await self._environment.run(["sh", "-c", _ABSENT, "sh", *places])
        if looked.exit_code != 0:
            raise PartFailed("The session's files cannot be checked, because its environment has no `sh`.")
        told = []
        for path in looked.stdout.decode().split("\0")[:-1]:
            resource = places[path]
            try:
                part = await self._sources.file(self._organisation, str(resource["file_id"]))
            except PartFailed as error:
                added, completed = datetime.fromisoformat(str(resource["created_at"])), await last_completed(claim)
                if completed is not None and added < completed:
                    continue
                if claim.forked_at is None or added >= claim.forked_at:
                    raise _never_had(claim.session_id, resource, error) from error
                told.append(parts.not_inherited(path, error))
                continue
            await self._write(path, part.data)
        return told

    async def _write(self, path: str, content: bytes) -> None:
        await self._environment.ensure_open()  # outside `try`: this failure is not the file's
        try:
            await self._environment.write(path, content)
        except OSError as error:
            raise PartFailed(
                f"{path} could not be written to the session's files: {error.strerror or error}.",
                help_text="Check that no directory has the same name, and that the disk is not full.",
            ) from error
        self._written()

    async def _block(self, block: JsonObject, inline: Inline) -> JsonObject:
        source = block.get("source")
        if block.get("type") not in {"image", "document"} or not isinstance(source, dict):
            found = block
        elif block.get("deliver") == "file":
            part = await self._part(source, str(block.get("title") or ""))
            await self._write(part.path, part.data)
            found = parts.told(part, f"{self._environment.root}/{part.path}", block)
        else:
            inline.announce(await self._size(block, source))
            part = await self._part(source, str(block.get("title") or ""))
            found = parts.inline(part, block, harness=self._config.harness, model=self._config.model)
        inline.add(found)
        return found

    async def _size(self, block: JsonObject, source: JsonObject) -> int:
        """Return the size before loading. For a URL it is unknown (0); downloads have their own limit."""
        if source.get("type") == "file":
            return await self._sources.size(self._organisation, str(source.get("file_id")))
        return parts.length(block)

    async def _part(self, source: JsonObject, title: str) -> Part:
        match source.get("type"):
            case "file":
                return await self._sources.file(self._organisation, str(source.get("file_id")))
            case "url":
                return await self._sources.url(str(source.get("url")))
            case "text":
                return Part(str(source.get("data") or "").encode(), "text/plain", title)
            case "base64":
                return Part(_decoded(str(source.get("data") or "")), str(source.get("media_type")), title)
            case other:
                raise PartFailed(f"The source type {other!r} is unknown.")


def _never_had(session_id: str, resource: JsonObject, error: PartFailed) -> PartFailed:
    return PartFailed(
        f"The session's file {resource['mount_path']} cannot be added to its tree: {error.message}",
        help_text="Remove it from the session, and add a replacement if needed: "
        f"DELETE /v1/sessions/{session_id}/resources/{resource['id']}.",
    )


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise PartFailed(f"An attachment is not valid base64: {error}.") from error
