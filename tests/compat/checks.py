"""What probes ask for, again and again."""

from typing import Any

from bench.prove.figure import require
from bench.support.sdk.door import Door


def equal(found: object, wanted: object) -> None:
    require(holds=found == wanted, otherwise=f"found {found!r} where {wanted!r} was due")


async def walked(door: Door, method: str, *args: Any, **kwargs: Any) -> list[list[Any]]:
    """A list's pages, one call each, by the cursor of the page before."""
    page = await door.call(method, *args, **kwargs)
    pages = [page.data]
    while page.next_page is not None:
        page = await door.call(method, *args, **kwargs, page=page.next_page)
        pages.append(page.data)
    return pages
