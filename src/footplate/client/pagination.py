"""Paginated lists: iterate over all items, or fetch one page at a time."""

from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar

from footplate.client.response_models import Page, ResponseModel
from footplate.client.transport import Params, Transport

M = TypeVar("M", bound=ResponseModel)


class Pages(Generic[M]):
    """A paginated list. `async for item in pages` fetches pages as needed; `await pages.page()` is one request."""

    def __init__(self, transport: Transport, path: str, model: type[M], params: Params) -> None:
        self._transport = transport
        self._path = path
        self._model = model
        self._params = drop_none(**params)

    async def page(self, cursor: str | None = None) -> Page[M]:
        body = await self._transport.get(self._path, {**self._params, **drop_none(page=cursor)})
        return Page[M](
            data=[self._model.model_validate(item) for item in body["data"]], next_page=body.get("next_page")
        )

    async def __aiter__(self) -> AsyncIterator[M]:
        cursor: str | None = None
        while True:
            page = await self.page(cursor)
            for item in page.data:
                yield item
            if (cursor := page.next_page) is None:
                return


def drop_none(**fields: Any) -> dict[str, Any]:
    """Returns the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
