"""Bodies that are too large for a row go to the object store and leave a readable head behind.

Objects are written before the row that names them commits: a crash in between leaves an object that nobody
names, never a row that names nothing.
"""

from pathlib import Path

import orjson
from obstore.store import LocalStore, ObjectStore, from_url

from footplate.domain import ids
from footplate.domain.bodies import INLINE_LIMIT, shorten
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

    async def delete_session(self, organisation: str, session_id: str) -> None:
        async for batch in self._store.list(prefix=f"{organisation}/{session_id}/"):
            for item in batch:
                await self._store.delete_async(item["path"])
