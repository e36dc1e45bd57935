"""The entry point of the web tools: `WebTools` fetches pages and searches, and is shared by all turns of a process."""

from footplate.domain.addresses import Reach
from footplate.domain.ports import WebAccess
from footplate.harness.native.web import pages, search
from footplate.harness.native.web.download import Downloads


class Web:
    def __init__(self, access: WebAccess | None = None) -> None:
        limits = access or WebAccess()
        self._downloads = Downloads(Reach(limits.allow), max_bytes=limits.max_bytes, max_seconds=limits.max_seconds)
        self._search = limits.search

    async def fetch(self, url: str) -> str:
        return await pages.readable(await self._downloads.page(url.strip()))

    async def search(self, query: str) -> str:
        return await search.search(self._downloads, self._search, query)
