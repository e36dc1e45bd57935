"""Prepares the attachments of a turn's inputs: fetches them, and inlines them or writes them to files.

Attachments are fetched right before the input is added to the conversation, not at the start of the turn. After the
input was added, later attempts do not fetch them again. An attachment always has the same path, so writing it twice is
harmless.
"""

import base64
import binascii
import posixpath
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final

from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.files import attachments
from footplate.domain.files.attachments import (
    Attachment,
    AttachmentDelivery,
    AttachmentFailed,
    AttachmentRefused,
    AttachmentSources,
    InlineBudget,
)
from footplate.domain.json import JsonObject
from footplate.domain.ports.engine import Claim, OpenEnvironment
from footplate.domain.ports.harness import Gate
from footplate.engine.turn.project_files import ProjectFiles

_LIST_MISSING_SCRIPT: Final = 'for path; do [ -e "$path" ] || printf "%s\\0" "$path"; done'


class TurnAttachments:
    def __init__(
        self,
        sources: AttachmentSources,
        organisation: str,
        config: ResolvedConfig,
        environment: OpenEnvironment,
        gate: Gate,
        provider: str,
        on_file_written: Callable[[], None] = lambda: None,
    ) -> None:
        """`provider`: that of the model. `on_file_written` is called after each file that is written to the tree."""
        self._on_file_written = on_file_written
        self._sources = sources
        self._organisation = organisation
        self._config = config
        self._environment = environment
        self._provider = provider
        self._project_files = ProjectFiles(environment, gate)

    async def resolve_attachments(self, blocks: Sequence[JsonObject]) -> list[JsonObject]:
        """Prepare the blocks for the model. Raises `Permanent` if an attachment cannot be loaded or is not accepted."""
        budget = attachments.InlineBudget()
        return [await self._prepare_block(block, budget) for block in blocks]

    async def resolve_steering(self, blocks: Sequence[JsonObject]) -> list[JsonObject]:
        """Prepare the blocks of a steering message. A text replaces an attachment that failed."""
        budget = attachments.InlineBudget()
        resolved: list[JsonObject] = []
        for block in blocks:
            try:
                resolved.append(await self._prepare_block(block, budget))
            except (AttachmentFailed, AttachmentRefused) as error:
                resolved.append(attachments.describe_missing(error, block))
        return resolved

    async def write_missing_resources(
        self, claim: Claim, last_completed: Callable[[Claim], Awaitable[datetime | None]]
    ) -> list[JsonObject]:
        """Write the session's resource files that are missing in its tree. Existing files are not changed. Returns
        messages for the model.

        A file that an earlier turn had and that no longer exists is skipped: it was deleted on purpose in both places.
        A fork continues without a missing file of its parent, and reports it to the model once.
        """
        resources_by_path = {str(resource["mount_path"]): resource for resource in claim.resources}
        if not resources_by_path:
            return []
        listing = await self._environment.run(["sh", "-c", _LIST_MISSING_SCRIPT, "sh", *resources_by_path])
        if listing.exit_code != 0:
            raise AttachmentFailed("The session's files cannot be checked, because its environment has no `sh`.")
        messages = []
        for path in listing.stdout.decode().split("\0")[:-1]:
            resource = resources_by_path[path]
            try:
                attachment = await self._sources.load_file(self._organisation, str(resource["file_id"]))
            except AttachmentFailed as error:
                added, completed = datetime.fromisoformat(str(resource["created_at"])), await last_completed(claim)
                if completed is not None and added < completed:
                    continue
                if claim.forked_at is None or added >= claim.forked_at:
                    raise _missing_resource(claim.session_id, resource, error) from error
                messages.append(attachments.describe_not_inherited(path, error))
                continue
            await self._write(path, attachment.data)
        return messages

    async def _write(self, path: str, content: bytes) -> None:
        await self._environment.ensure_open()  # outside `try`: this failure is not the file's
        try:
            await self._environment.write(posixpath.join(self._environment.root, path), content)
        except OSError as error:
            raise AttachmentFailed(
                f"{path} could not be written to the session's files: {error.strerror or error}.",
                help_text="Check that no directory has this name and that the disk is not full.",
            ) from error
        self._on_file_written()

    async def _prepare_block(self, block: JsonObject, budget: InlineBudget) -> JsonObject:
        source = block.get("source")
        if block.get("type") not in attachments.BLOCK_TYPES or not isinstance(source, dict):
            prepared = block
        else:
            match attachments.delivery_of(block):
                case AttachmentDelivery.FILE:
                    prepared = await self._deliver_as_file(block, source)
                case AttachmentDelivery.INLINE:
                    prepared = await self._deliver_inline(block, source, budget)
                case AttachmentDelivery.URL:
                    prepared = attachments.url_block(block, model=self._config.model, provider=self._provider)
                    await self._sources.check_url(str(source.get("url")))
        budget.add(prepared)
        return prepared

    async def _deliver_as_file(self, block: JsonObject, source: JsonObject) -> JsonObject:
        if source.get("type") == "path":
            file = await self._project_files.find_file(source)
            return attachments.describe_project_file(file.path, file.size, block)
        attachment = await self._load_attachment(source, str(block.get("title") or ""))
        await self._write(attachment.path, attachment.data)
        return attachments.describe_written_file(attachment, f"{self._environment.root}/{attachment.path}", block)

    async def _deliver_inline(self, block: JsonObject, source: JsonObject, budget: InlineBudget) -> JsonObject:
        if source.get("type") == "path":
            file = await self._project_files.find_file(source)
            budget.check_fits(file.size)
            attachment = await self._project_files.load_file(file)
        else:
            budget.check_fits(await self._known_size(block, source))
            attachment = await self._load_attachment(source, str(block.get("title") or ""))
        return attachments.inline_block(attachment, block, model=self._config.model, provider=self._provider)

    async def _known_size(self, block: JsonObject, source: JsonObject) -> int:
        """Return the size before loading. For a URL it is unknown (0); downloads have their own limit."""
        if source.get("type") == "file":
            return await self._sources.file_size(self._organisation, str(source.get("file_id")))
        return attachments.content_bytes(block)

    async def _load_attachment(self, source: JsonObject, title: str) -> Attachment:
        match source.get("type"):
            case "file":
                return await self._sources.load_file(self._organisation, str(source.get("file_id")))
            case "url":
                return await self._sources.fetch_url(str(source.get("url")))
            case "text":
                return Attachment(str(source.get("data") or "").encode(), "text/plain", title)
            case "base64":
                return Attachment(_decode_base64(str(source.get("data") or "")), str(source.get("media_type")), title)
            case other:
                raise AttachmentFailed(f"The source type {other!r} of an attachment is not supported.")


def _missing_resource(session_id: str, resource: JsonObject, error: AttachmentFailed) -> AttachmentFailed:
    return AttachmentFailed(
        f"The file {resource['mount_path']} cannot be added to the session: {error.message}",
        help_text=f"Remove it with DELETE /v1/sessions/{session_id}/resources/{resource['id']}, "
        "and add a replacement if needed.",
    )


def _decode_base64(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise AttachmentFailed(f"An attachment is not valid base64: {error}.") from error
