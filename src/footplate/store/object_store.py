"""Reads and writes the object store: event bodies that are too large for a row, archives, files and snapshots.

The row of a large body keeps a shortened, readable version. An object is written before the row that refers to it is
committed. A crash may therefore leave an unused object, but never a row whose object is missing.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import orjson
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from footplate.domain import ids
from footplate.domain.errors import Unavailable
from footplate.domain.files.object_gc import StoredObject
from footplate.domain.json import JsonObject, clean_object
from footplate.domain.text.event_truncation import INLINE_LIMIT, truncate_body

_MAX_REASON: Final = 300


class Objects:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @classmethod
    def open(cls, url: str | None, data_dir: Path) -> "Objects":
        """Opens the store. Creates only the default directory: a missing one that was configured is probably a network
        file system that is not mounted.
        """
        try:
            if url is None:
                return cls(LocalStore(data_dir / "objects", mkdir=True))
            if (split := urlsplit(url)).scheme == "file":
                _check_directory(Path(unquote(split.path)))
            return cls(from_url(url))
        except (BaseError, OSError, ValueError) as error:
            raise _unusable_store(url or str(data_dir / "objects"), error) from error

    async def check_access(self) -> None:
        """Raises `Unavailable` if the directory or bucket does not exist, or cannot be used."""
        if (folder := self._local_directory) is not None:
            try:
                _check_directory(folder)
            except OSError as error:
                raise _unusable_store(str(folder), error) from error
            return
        try:
            async for _ in self._store.list(prefix="no-such-folder/"):
                pass
        except BaseError as error:
            await _check_certificate(os.environ.get("AWS_ENDPOINT_URL", ""))
            raise _unusable_store("FOOTPLATE_OBJECTS_URL", error) from error

    async def fit_body(self, organisation: str, session_id: str, body: JsonObject) -> tuple[str, str]:
        """Returns the JSON text for the row, and the object key of the complete body. The key is empty if the row has
        the complete body. A large body is uploaded.
        """
        body = clean_object(body)
        whole = orjson.dumps(body)
        if len(whole) <= INLINE_LIMIT:
            return whole.decode(), ""
        key = f"{organisation}/{session_id}/{ids.new_id('body')}.json"
        with _translate_store_errors():
            await self._store.put_async(key, whole)
        return orjson.dumps(truncate_body(body, size=len(whole))).decode(), key

    async def load_body(self, key: str) -> JsonObject:
        with _translate_store_errors():
            result = await self._store.get_async(key)
            body: JsonObject = orjson.loads(bytes(await result.bytes_async()))
        return body

    async def write_object(self, key: str, pieces: AsyncIterator[bytes]) -> None:
        """Writes an object from a stream of chunks. It appears only once it is complete and durable."""
        with _translate_store_errors():
            await self._store.put_async(key, pieces)
            if (folder := self._local_directory) is not None:
                await asyncio.to_thread(_sync_to_disk, folder, folder / key)

    async def create(self, key: str, content: bytes) -> bool:
        """Creates an object durably. Returns False, and changes nothing, if the key already exists."""
        created = True
        with _translate_store_errors():
            try:
                await self._store.put_async(key, content, mode="create", use_multipart=False)
            except (AlreadyExistsError, FileExistsError):
                created = False
            if (
                folder := self._local_directory
            ) is not None:  # also if it existed: its writer may have died before this step
                await asyncio.to_thread(_sync_to_disk, folder, folder / key)
        return created

    async def list_names(self, prefix: str) -> list[str]:
        """Returns the names of all objects below the folder `prefix`, relative to it."""
        return [item.key.removeprefix(f"{prefix}/") for item in await self.list_objects(prefix)]

    async def list_folders(self, prefix: str = "") -> list[str]:
        """Returns the names of the folders directly below the folder `prefix`, or at the top level."""
        with _translate_store_errors():
            found = await self._store.list_with_delimiter_async(prefix=f"{prefix}/" if prefix else None)
        return sorted(path.rstrip("/").rpartition("/")[2] for path in found["common_prefixes"])

    async def list_objects(self, prefix: str) -> list[StoredObject]:
        """Returns all objects below the folder `prefix`."""
        with _translate_store_errors():
            return [
                StoredObject(item["path"], item["size"], item["last_modified"])
                async for batch in self._store.list(prefix=f"{prefix}/")
                for item in batch
            ]

    async def list_all(self) -> AsyncIterator[list[StoredObject]]:
        """Yields all objects of the store, in batches."""
        with _translate_store_errors():
            async for batch in self._store.list():
                yield [StoredObject(item["path"], item["size"], item["last_modified"]) for item in batch]

    async def find(self, key: str) -> StoredObject | None:
        with _translate_store_errors():
            try:
                item = await self._store.head_async(key)
            except FileNotFoundError:
                return None
        return StoredObject(item["path"], item["size"], item["last_modified"])

    async def copy_object(self, key: str, target: "Objects") -> bool:
        """Copies an object into another store. Returns False if it does not exist any more."""
        with _translate_store_errors():
            try:
                content = await self._store.get_async(key)
            except FileNotFoundError:
                return False
            await target.write_object(key, content.stream())
        return True

    async def read_chunks(self, key: str) -> AsyncIterator[bytes]:
        """Yields an object in chunks. Raises FileNotFoundError if it does not exist."""
        with _translate_store_errors():
            async for piece in (await self._store.get_async(key)).stream():
                yield bytes(piece)

    async def read_range(self, key: str, start: int, end: int) -> bytes:
        """Reads a byte range of an object. Raises FileNotFoundError if it does not exist."""
        with _translate_store_errors():
            return bytes(await self._store.get_range_async(key, start=start, end=end))

    async def delete_session(self, organisation: str, session_id: str) -> None:
        await self.delete_folder(f"{organisation}/{session_id}")

    async def delete_folder(self, prefix: str, *, except_keys: Collection[str] = ()) -> None:
        """Deletes every object below the folder `prefix`, except the keys in `except_keys`."""
        with _translate_store_errors():
            async for batch in self._store.list(prefix=f"{prefix}/"):
                for item in batch:
                    if item["path"] not in except_keys:
                        await self.delete_object(item["path"])
        if (folder := self._local_directory) is not None:
            await asyncio.to_thread(_remove_unlisted_files, folder / prefix, {folder / key for key in except_keys})

    async def delete_object(self, key: str) -> None:
        with _translate_store_errors(), suppress(FileNotFoundError):
            await self._store.delete_async(key)

    @property
    def _local_directory(self) -> Path | None:
        """The directory of a local store, whose objects are plain files; None for other stores."""
        if isinstance(self._store, LocalStore) and self._store.prefix is not None:
            return Path(self._store.prefix)
        return None


@contextmanager
def _translate_store_errors() -> Iterator[None]:
    try:
        yield
    except BaseError as error:
        raise Unavailable(
            f"The object store does not respond ({type(error).__name__}).",
            retry_after=1,
            help_text="Try again in a moment. If it persists, check FOOTPLATE_OBJECTS_URL and its credentials.",
        ) from error


def _check_directory(folder: Path) -> None:
    if not folder.is_dir():
        raise NotADirectoryError("the directory does not exist")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError("this user may not write to the directory")


async def _check_certificate(endpoint: str) -> None:
    """Raises `Unavailable` if the certificate of the endpoint is refused. The library does not report this reason."""
    parts = urlsplit(endpoint)
    if parts.scheme != "https":
        return
    try:
        _, writer = await asyncio.open_connection(parts.hostname, parts.port or 443, ssl=ssl.create_default_context())
    except ssl.SSLCertVerificationError as error:
        raise Unavailable(
            f"The certificate of the object store at {endpoint} is refused: {error.verify_message}.",
            help_text="Correct AWS_ENDPOINT_URL or the certificate of the server. If its authority is your own, set "
            "SSL_CERT_FILE to a file with the certificates of all authorities.",
        ) from error
    except OSError:
        return
    writer.close()


def _unusable_store(place: str, error: Exception) -> Unavailable:
    reason = str(error).partition("\n")[0].rstrip(".")[:_MAX_REASON]
    return Unavailable(
        f"The object store at {place} cannot be used: {reason}.",
        help_text="Create the directory or the bucket, mount its file system, or correct FOOTPLATE_OBJECTS_URL and the "
        "credentials of the bucket.",
    )


def _sync_to_disk(root: Path, path: Path) -> None:
    """Syncs a file and its parent directories to disk. Rows are deleted once the file exists, so it must survive a
    power failure.
    """
    for part in (path, *path.relative_to(root).parents):
        descriptor = os.open(root / part, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove_unlisted_files(folder: Path, except_paths: Collection[Path]) -> None:
    """Deletes files of interrupted uploads, which the store does not list, and empty directories."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            if (path := Path(parent, name)) not in except_paths:
                path.unlink(missing_ok=True)
        with suppress(OSError):
            Path(parent).rmdir()
