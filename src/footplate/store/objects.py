"""Bodies that are too large for a row go to the object store and leave a readable head behind; so do archives.

Objects are written before the row that names them commits: a crash in between leaves an object that nobody
names, never a row that names nothing.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import orjson
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from footplate.domain import ids
from footplate.domain.bodies import INLINE_LIMIT, shorten
from footplate.domain.collecting import Stored
from footplate.domain.errors import Unavailable
from footplate.domain.json import JsonObject, clean_object


class Objects:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @classmethod
    def open(cls, url: str | None, data_dir: Path) -> "Objects":
        if url is None:
            return cls(LocalStore(data_dir / "objects", mkdir=True))
        return cls(from_url(url))

    async def fit(self, organisation: str, session_id: str, body: JsonObject) -> tuple[str, str]:
        """The JSON text to keep inline, and the key of the whole body in the object store (empty: it is whole)."""
        body = clean_object(body)
        whole = orjson.dumps(body)
        if len(whole) <= INLINE_LIMIT:
            return whole.decode(), ""
        key = f"{organisation}/{session_id}/{ids.new_id('body')}.json"
        await self._store.put_async(key, whole)
        return orjson.dumps(shorten(body, size=len(whole))).decode(), key

    async def load(self, key: str) -> JsonObject:
        result = await self._store.get_async(key)
        body: JsonObject = orjson.loads(bytes(await result.bytes_async()))
        return body

    async def write(self, key: str, pieces: AsyncIterator[bytes]) -> None:
        """An object in pieces, never whole in memory; there only once it is complete, and to stay."""
        with _translated():
            await self._store.put_async(key, pieces)
            if (folder := self._folder) is not None:
                await asyncio.to_thread(_settle, folder, folder / key)

    async def create(self, key: str, content: bytes) -> bool:
        """All at once, to stay; False if there is an object of that name already, which is left as it is."""
        created = True
        with _translated():
            try:
                await self._store.put_async(key, content, mode="create", use_multipart=False)
            except (AlreadyExistsError, FileExistsError):
                created = False
            if (folder := self._folder) is not None:  # another's, too: it may have died before it came to this
                await asyncio.to_thread(_settle, folder, folder / key)
        return created

    async def names(self, prefix: str) -> list[str]:
        """What objects below the folder `prefix` are called there."""
        return [one.key.removeprefix(f"{prefix}/") for one in await self.stored(prefix)]

    async def folders(self, prefix: str = "") -> list[str]:
        """What folders there are right below the folder `prefix`, or at the top."""
        with _translated():
            found = await self._store.list_with_delimiter_async(prefix=f"{prefix}/" if prefix else None)
        return sorted(path.rstrip("/").rpartition("/")[2] for path in found["common_prefixes"])

    async def stored(self, prefix: str) -> list[Stored]:
        """All objects below the folder `prefix`."""
        with _translated():
            return [
                Stored(item["path"], item["size"], item["last_modified"])
                async for batch in self._store.list(prefix=f"{prefix}/")
                for item in batch
            ]

    async def pieces(self, key: str) -> AsyncIterator[bytes]:
        """All of an object, as it comes. Raises FileNotFoundError if it is not there."""
        with _translated():
            async for piece in (await self._store.get_async(key)).stream():
                yield bytes(piece)

    async def read(self, key: str, start: int, end: int) -> bytes:
        """Part of an object. Raises FileNotFoundError if it is not there."""
        with _translated():
            return bytes(await self._store.get_range_async(key, start=start, end=end))

    async def delete_session(self, organisation: str, session_id: str) -> None:
        await self.delete_under(f"{organisation}/{session_id}")

    async def delete_under(self, prefix: str, *, but: Collection[str] = ()) -> None:
        """Every object whose key begins with the folder `prefix`, some excepted."""
        with _translated():
            async for batch in self._store.list(prefix=f"{prefix}/"):
                for item in batch:
                    if item["path"] not in but:
                        await self.delete(item["path"])
        if (folder := self._folder) is not None:
            await asyncio.to_thread(_clear, folder / prefix, {folder / key for key in but})

    async def delete(self, key: str) -> None:
        with _translated(), suppress(FileNotFoundError):
            await self._store.delete_async(key)

    @property
    def _folder(self) -> Path | None:
        """Where objects are plain files."""
        if isinstance(self._store, LocalStore) and self._store.prefix is not None:
            return Path(self._store.prefix)
        return None


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except BaseError as error:
        raise Unavailable(
            f"The object store does not answer ({type(error).__name__}).",
            retry_after=1,
            help_text="Try again in a moment; check FOOTPLATE_OBJECTS_URL and that its credentials still work.",
        ) from error


def _settle(root: Path, path: Path) -> None:
    """A file that rows are deleted for has to outlive a power failure too: its bytes, and its names up to the root."""
    for place in (path, *path.relative_to(root).parents):
        descriptor = os.open(root / place, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _clear(folder: Path, but: Collection[Path]) -> None:
    """What an upload that was killed has left (the store lists no such file), and folders with nothing in them."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            if (path := Path(parent, name)) not in but:
                path.unlink(missing_ok=True)
        with suppress(OSError):
            Path(parent).rmdir()
