"""The check of an object store finds stores that replace objects although the request forbids it."""

from typing import Any

from obstore.store import MemoryStore

from footplate.cli.actions.service_rights import find_object_store_fault
from footplate.store.object_store import Objects


class _UnconditionalStore:
    """Ignores the condition of a request, as some servers with the S3 interface do."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    async def put_async(self, key: str, content: bytes, **_: Any) -> None:
        await self._store.put_async(key, content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_a_store_without_conditional_writes_is_found() -> None:
    store = MemoryStore()
    assert await find_object_store_fault(Objects(store)) == ""
    assert [item async for batch in store.list() for item in batch] == []
    unconditional = _UnconditionalStore()
    fault = await find_object_store_fault(Objects(unconditional))
    assert "replaces an object that exists" in fault
    assert [item async for batch in unconditional.list() for item in batch] == []
