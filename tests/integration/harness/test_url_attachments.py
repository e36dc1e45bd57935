"""Attachments given by URL are fetched whole, and only from allowed addresses."""

import socket
from collections.abc import AsyncIterator

import pytest

from footplate.domain.files.attachments import AttachmentFailed
from footplate.domain.network.dns_lookup import NameLookup
from footplate.domain.ports.harness import WebAccess
from footplate.harness import address_check
from footplate.harness.attachment_download import AttachmentFetcher

from .web_server import PageServer, endless, ok, redirect, silent

PDF = b"%PDF-1.7 and so on"


@pytest.fixture
async def pages() -> AsyncIterator[PageServer]:
    async with PageServer() as server:
        yield server


def fetcher(*allow: str, max_bytes: int = 100_000, max_seconds: float = 5) -> AttachmentFetcher:
    return AttachmentFetcher(WebAccess(allow=allow or ("127.0.0.1",), max_seconds=max_seconds), max_bytes=max_bytes)


async def test_an_attachment_has_bytes_type_and_name(pages: PageServer) -> None:
    pages.responses["/docs/a%20report.pdf"] = ok(PDF, "application/pdf; version=1")
    pages.responses["/moved"] = redirect("/docs/a%20report.pdf")
    part = await fetcher().fetch(pages.url("/moved"))
    assert (part.data, part.media_type, part.name) == (PDF, "application/pdf", "a report.pdf")


async def test_a_large_attachment_is_refused_not_truncated(pages: PageServer) -> None:
    pages.responses["/"] = ok(b"x" * 101, "text/plain")
    with pytest.raises(AttachmentFailed, match="larger than 100 bytes"):
        await fetcher(max_bytes=100).fetch(pages.url())
    pages.responses["/endless"] = endless
    with pytest.raises(AttachmentFailed, match="larger than"):
        await fetcher(max_bytes=100_000).fetch(pages.url("/endless"))


async def test_an_error_page_is_refused(pages: PageServer) -> None:
    with pytest.raises(AttachmentFailed, match="responded with 404 Not Found") as caught:
        await fetcher().fetch(pages.url("/none"))
    assert "Upload" in caught.value.help_text


async def test_a_silent_server_times_out(pages: PageServer) -> None:
    pages.responses["/"] = silent
    with pytest.raises(AttachmentFailed, match=r"took longer than 0\.3 s"):
        await fetcher(max_seconds=0.3).fetch(pages.url())


async def test_internal_addresses_are_not_reached(pages: PageServer) -> None:
    for url in (pages.url(), pages.url(host="localhost"), "http://[::1]/", "http://169.254.169.254/latest/meta-data/"):
        with pytest.raises(AttachmentFailed, match="FOOTPLATE_WEB_ALLOW"):
            await fetcher("10.1.2.3").fetch(url)
    assert pages.seen == []


@pytest.mark.requirement("R6")
async def test_a_url_for_the_provider_is_checked_and_not_fetched(pages: PageServer) -> None:
    await fetcher().check(pages.url())
    for url in (pages.url(), "http://169.254.169.254/", "http://user:secret@93.184.216.34/", "http://[", "ftp://x"):
        with pytest.raises(AttachmentFailed, match="cannot be passed on"):
            await fetcher("10.1.2.3").check(url)
    await fetcher("10.1.2.3").check("https://93.184.216.34/a.png")
    assert pages.seen == []


async def test_a_redirect_to_an_internal_address_is_not_followed(pages: PageServer) -> None:
    async with PageServer(host="127.0.0.2") as inside:
        pages.responses["/"] = redirect(inside.url())
        with pytest.raises(AttachmentFailed, match="FOOTPLATE_WEB_ALLOW"):
            await fetcher("127.0.0.1").fetch(pages.url())
        assert inside.seen == []


async def test_a_name_that_changes_its_address_is_refused(pages: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is looked up once, so the checked address is the one that is connected to."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, _family: int, _kind: int) -> list[tuple[object, ...]]:
        asked.append(host)
        address = "127.0.0.1" if len(asked) == 1 else "127.0.0.2"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(address_check, "_NAME_LOOKUP", NameLookup(getaddrinfo))
    pages.responses["/a.pdf"] = ok(PDF, "application/pdf")
    part = await fetcher("127.0.0.1").fetch(pages.url("/a.pdf", host="rebound.example.com"))
    assert part.data == PDF
    assert asked == ["rebound.example.com"]
    with pytest.raises(AttachmentFailed, match="FOOTPLATE_WEB_ALLOW"):
        await fetcher("127.0.0.1").fetch(pages.url("/a.pdf", host="rebound.example.com"))
    assert len(pages.seen) == 1
