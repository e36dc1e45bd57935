"""Helpers that several probes use."""

from typing import Any

from bench.prove.figure import require
from bench.support.sdk.sdk_client import SdkClient


def require_equal(found: object, wanted: object) -> None:
    require(holds=found == wanted, otherwise=f"expected {wanted!r}, found {found!r}")


async def read_pages(door: SdkClient, method: str, *args: Any, **kwargs: Any) -> list[list[Any]]:
    """Reads every page of a list, one call per page, by following the cursors."""
    page = await door.call(method, *args, **kwargs)
    pages = [page.data]
    while page.next_page is not None:
        page = await door.call(method, *args, **kwargs, page=page.next_page)
        pages.append(page.data)
    return pages
