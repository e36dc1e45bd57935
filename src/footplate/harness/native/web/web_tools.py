"""Implements the tools `web_fetch` and `web_search`, with the address, size and time limits of the operator."""

from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.ports.harness import WebAccess
from footplate.harness.native.web import page_text, search
from footplate.harness.native.web.download import Downloader


class WebTools:
    def __init__(self, access: WebAccess | None = None) -> None:
        limits = access or WebAccess()
        self._downloads = Downloader(
            AddressPolicy(limits.allow), max_bytes=limits.max_bytes, max_seconds=limits.max_seconds
        )
        self._search = limits.search

    async def fetch(self, url: str) -> str:
        return await page_text.page_to_text(await self._downloads.download_page(url.strip()))

    async def search(self, query: str) -> str:
        return await search.search_web(self._downloads, self._search, query)
