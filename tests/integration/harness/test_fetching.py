"""Attachments given by URL are fetched whole, and only from allowed addresses."""

import socket
from collections.abc import AsyncIterator

import pytest

from footplate.domain.name_lookup import NameLookup
from footplate.domain.parts import PartFailed
from footplate.domain.ports import WebAccess
from footplate.harness import reaching
from footplate.harness.fetching import Fetcher

from .pages import Pages, endless, moved, ok, silent

PDF = b"%PDF-1.7 and so on"


@pytest.fixture
async def pages() -> AsyncIterator[Pages]:
    async with Pages() as server:
        yield server


def fetcher(*allow: str, max_bytes: int = 100_000, max_seconds: float = 5) -> Fetcher:
    return Fetcher(WebAccess(allow=allow or ("127.0.0.1",), max_seconds=max_seconds), max_bytes=max_bytes)


async def test_bytes_type_and_name(pages: Pages) -> None:
    pages.answers["/docs/a%20report.pdf"] = ok(PDF, "application/pdf; version=1")
    pages.answers["/moved"] = moved("/docs/a%20report.pdf")
    part = await fetcher().fetch(pages.url("/moved"))
    assert (part.data, part.media_type, part.name) == (PDF, "application/pdf", "a report.pdf")


async def test_one_that_is_too_large_is_not_cut(pages: Pages) -> None:
    pages.answers["/"] = ok(b"x" * 101, "text/plain")
    with pytest.raises(PartFailed, match="larger than 100 bytes"):
        await fetcher(max_bytes=100).fetch(pages.url())
    pages.answers["/endless"] = endless
    with pytest.raises(PartFailed, match="larger than"):
        await fetcher(max_bytes=100_000).fetch(pages.url("/endless"))


async def test_an_error_page_is_no_document(pages: Pages) -> None:
    with pytest.raises(PartFailed, match="responded with 404 Not Found") as caught:
        await fetcher().fetch(pages.url("/none"))
    assert "Upload" in caught.value.help_text


async def test_silence_ends(pages: Pages) -> None:
    pages.answers["/"] = silent
    with pytest.raises(PartFailed, match=r"took longer than 0\.3 s"):
        await fetcher(max_seconds=0.3).fetch(pages.url())


async def test_internal_addresses_are_not_reached(pages: Pages) -> None:
    for url in (pages.url(), pages.url(host="localhost"), "http://[::1]/", "http://169.254.169.254/latest/meta-data/"):
        with pytest.raises(PartFailed, match="FOOTPLATE_WEB_ALLOW"):
            await fetcher("10.1.2.3").fetch(url)
    assert pages.seen == []


async def test_a_redirect_into_the_inside_is_not_followed(pages: Pages) -> None:
    async with Pages(host="127.0.0.2") as inside:
        pages.answers["/"] = moved(inside.url())
        with pytest.raises(PartFailed, match="FOOTPLATE_WEB_ALLOW"):
            await fetcher("127.0.0.1").fetch(pages.url())
        assert inside.seen == []


async def test_a_name_that_changes_its_address_gets_nowhere(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is looked up once, so the checked address is the one that is connected to."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, _family: int, _kind: int) -> list[tuple[object, ...]]:
        asked.append(host)
        address = "127.0.0.1" if len(asked) == 1 else "127.0.0.2"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(reaching, "_NAMES", NameLookup(getaddrinfo))
    pages.answers["/a.pdf"] = ok(PDF, "application/pdf")
    part = await fetcher("127.0.0.1").fetch(pages.url("/a.pdf", host="rebound.example.com"))
    assert part.data == PDF
    assert asked == ["rebound.example.com"]
    with pytest.raises(PartFailed, match="FOOTPLATE_WEB_ALLOW"):
        await fetcher("127.0.0.1").fetch(pages.url("/a.pdf", host="rebound.example.com"))
    assert len(pages.seen) == 1
