"""The parts of a turn's inputs, made ready right before the conversation has them: fetched, written or put inside.

Only then, and not when the turn begins: a later attempt finds the conversation as it is, and fetches nothing again. A
part that is written to a file has the same path each time, so one that was written twice was written once.
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
_UNREAD: Final = "The file {!r} cannot be read by this worker."


class NoSources:
    """Of a worker that was given none."""

    async def size(self, organisation: str, file_id: str) -> int:
        del organisation
        raise PartFailed(_UNREAD.format(file_id))

    async def file(self, organisation: str, file_id: str) -> Part:
        del organisation
        raise PartFailed(_UNREAD.format(file_id))

    async def url(self, url: str) -> Part:
        raise PartFailed(f"{url} cannot be fetched by this worker.")


class TurnInputs:
    def __init__(
        self,
        sources: Sources,
        organisation: str,
        config: ResolvedConfig,
        environment: Environment,
        written: Callable[[], None] = lambda: None,
    ) -> None:
        """`written`: is told of each file that was written to the tree."""
        self._written = written
        self._sources = sources
        self._organisation = organisation
        self._config = config
        self._environment = environment

    async def resolve(self, blocks: Sequence[JsonObject]) -> list[JsonObject]:
        """What a harness gives its model. Raises `Permanent` for what cannot be had or is not taken."""
        inline = parts.Inline()
        return [await self._block(block, inline) for block in blocks]

    async def resolve_steering(self, blocks: Sequence[JsonObject]) -> list[JsonObject]:
        """The same; what went wrong with a part stands in its place."""
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
        """Files of the session that are not in its tree, or not any more; one that is there is left as it is. Returns
        what the model has to be told.

        One that an earlier turn had, and that can be had no more, is the session's affair: who deleted it from both
        places does not want it back. One that a fork has from its parent was never asked of the fork: it goes on
        without, and says so once.
        """
        places = {str(resource["mount_path"]): resource for resource in claim.resources}
        if not places:
            return []
        looked = await self._environment.run(["sh", "-c", _ABSENT, "sh", *places])
        if looked.exit_code != 0:
            raise PartFailed("Whether the session's files are in its tree cannot be told: its environment has no sh.")
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
        await self._environment.ensure_open()  # outside `try`: a failure to open is not reported as the file's
        try:
            await self._environment.write(path, content)
        except OSError as error:
            raise PartFailed(
                f"{path} could not be written to the session's files: {error.strerror or error}.",
                help_text="Is something else there under that name, or is the disk full?",
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
        """As far as it is known before it is loaded: a URL's is not, and has a limit of its own."""
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
                raise PartFailed(f"A source of type {other!r} is not known.")


def _never_had(session_id: str, resource: JsonObject, error: PartFailed) -> PartFailed:
    return PartFailed(
        f"The session's file {resource['mount_path']} cannot be put into its tree: {error.message}",
        help_text="Remove it from the session, and add another if it is needed: "
        f"DELETE /v1/sessions/{session_id}/resources/{resource['id']}.",
    )


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise PartFailed(f"An attachment is not valid base64: {error}.") from error
