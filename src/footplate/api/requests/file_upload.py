"""Receives a multipart form with one file. The file is first spooled to disk, so that no database connection is held
while a slow client sends it.
"""

import hashlib
import mimetypes
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from fastapi import Request
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from footplate.api.errors import TooLarge
from footplate.api.requests.parsing import parse_attempt, read_chunks
from footplate.api.service_container import get_services
from footplate.api.wire.visibility import parse_audience
from footplate.domain.errors import InvalidRequest
from footplate.domain.files.uploaded_files import UNKNOWN_TYPE, safe_file_name
from footplate.domain.organisations.visibility import Audience, Visibility

_FORM_OVERHEAD_BYTES: Final = 64 * 1024
"""Bytes that a form may have in addition to its file."""
_SETTING: Final = "FOOTPLATE_FILE_BYTES"
_CHUNK_BYTES: Final = 1 << 20
_FORM: Final = "multipart/form-data"
_MIME_TYPE_PATTERN: Final = re.compile(r"[\w!#$&^.+-]{1,100}/[\w!#$&^.+-]{1,100}")
_FIELDS: Final = frozenset({"file", "expires_in_seconds", "visibility", "team_id"})
_MIN_EXPIRY_SECONDS, _MAX_EXPIRY_SECONDS = 3600, 7_776_000


@dataclass(frozen=True, slots=True)
class Upload:
    file: UploadFile
    filename: str
    mime_type: str
    size: int
    digest: bytes
    expires_in: int | None
    audience: Audience

    @property
    def identity(self) -> bytes:
        """Stands for the whole request when retries are recognised: each attempt encodes its form differently."""
        fields = (self.filename, self.mime_type, str(self.expires_in or 0), self.audience.dump())
        return "\0".join(fields).encode() + b"\0" + self.digest

    async def chunks(self) -> AsyncIterator[bytes]:
        await self.file.seek(0)
        while chunk := await self.file.read(_CHUNK_BYTES):
            yield chunk


def read_declared_size(request: Request) -> int:
    """Returns the smallest size that the file can have according to the headers. It is 0 if they do not say, and for
    what may be a retry: its first attempt may have succeeded, and then it gets that response.
    """
    attempt, length = parse_attempt(request, b""), request.headers.get("content-length", "")
    may_be_retry = attempt is not None and (attempt.idempotency_key is not None or attempt.retry_count > 0)
    return 0 if may_be_retry or not length.isdecimal() else max(0, int(length) - _FORM_OVERHEAD_BYTES)


@asynccontextmanager
async def receive_upload(request: Request) -> AsyncIterator[Upload]:
    limit = get_services(request).max_file_bytes
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise InvalidRequest(
            f"A file must be uploaded as {_FORM}.",
            field="content-type",
            help_text="Send a form with the file in the field `file`: `curl -F file=@report.pdf …`.",
        )
    form = await _parse_form(request, limit)
    try:
        yield await _parse_upload(form, limit)
    finally:
        await form.close()


async def _parse_form(request: Request, limit: int) -> FormData:
    parser = MultiPartParser(request.headers, _chunks(request, limit + _FORM_OVERHEAD_BYTES), max_files=1, max_fields=3)
    try:
        return await parser.parse()
    except (MultiPartException, KeyError, UnicodeError) as error:
        raise InvalidRequest(
            f"The form cannot be parsed: {error}.", field="file", help_text="Send a form with one file."
        ) from error


async def _chunks(request: Request, limit: int) -> AsyncGenerator[bytes, None]:
    async for chunk in read_chunks(request, limit, _SETTING):
        yield chunk


async def _parse_upload(form: FormData, limit: int) -> Upload:
    unknown = next((name for name in form if name not in _FIELDS), None)
    if unknown is not None:
        raise InvalidRequest(f"{unknown}: is not a known field", field=unknown)
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise InvalidRequest(
            "file: must be present and contain a file", field="file", help_text="Send a file with a file name."
        )
    digest, size = hashlib.sha256(), 0
    while chunk := await file.read(_CHUNK_BYTES):
        digest.update(chunk)
        size += len(chunk)
    if size > limit:
        raise TooLarge(limit, _SETTING)
    mime_type = _detect_mime_type(file)
    return Upload(
        file=file,
        filename=safe_file_name(file.filename or "", mimetypes.guess_extension(mime_type) or ""),
        mime_type=mime_type,
        size=size,
        digest=digest.digest(),
        expires_in=_parse_expiry(form.get("expires_in_seconds")),
        audience=_parse_audience(form),
    )


def _detect_mime_type(file: UploadFile) -> str:
    declared = (file.content_type or "").partition(";")[0].strip().lower()
    if declared not in {"", UNKNOWN_TYPE} and _MIME_TYPE_PATTERN.fullmatch(declared):
        return declared
    return mimetypes.guess_type(file.filename or "")[0] or UNKNOWN_TYPE


def _parse_audience(form: FormData) -> Audience:
    visibility, team_id = form.get("visibility", "organisation"), form.get("team_id")
    if not isinstance(visibility, str) or visibility not in set(Visibility):
        raise InvalidRequest(f"visibility: must be one of {', '.join(Visibility)}", field="visibility")
    return parse_audience(visibility, team_id if isinstance(team_id, str) else None)


def _parse_expiry(value: UploadFile | str | None) -> int | None:
    if value is None:
        return None
    if (
        isinstance(value, str)
        and re.fullmatch(r"[0-9]{1,9}", value)
        and _MIN_EXPIRY_SECONDS <= int(value) <= _MAX_EXPIRY_SECONDS
    ):
        return int(value)
    raise InvalidRequest(
        f"expires_in_seconds: must be an integer from {_MIN_EXPIRY_SECONDS} to {_MAX_EXPIRY_SECONDS}",
        field="expires_in_seconds",
    )
