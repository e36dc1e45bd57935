"""web_fetch against a real server on loopback: what it reads, its limits, and the addresses that it refuses."""

import asyncio
import gzip
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.network.dns_lookup import NameLookup
from footplate.domain.ports.harness import WebAccess
from footplate.harness import address_check
from footplate.harness.native.tool_failure_error import ToolFailure
from footplate.harness.native.web import html_conversion
from footplate.harness.native.web.download import Downloader
from footplate.harness.native.web.web_tools import WebTools

from .web_server import PageServer, endless, ok, redirect, silent

pytestmark = pytest.mark.timing

HTML = b"""<!doctype html><html><head><title>Tea &amp; cake</title><style>p {color: red}</style></head><body>
<nav><a href="/">Home</a></nav><h1>Menu</h1><p>We have <b>scones</b> and <a href="cakes?all=1">cakes</a>.</p>
<script>alert("no")</script><table><tr><th>what</th><th>price</th></tr><tr><td>scone</td><td>3</td></tr></table>
</body></html>"""


def web(*allow: str, max_bytes: int = 100_000, max_seconds: float = 5) -> WebTools:
    return WebTools(WebAccess(allow=allow or ("127.0.0.1",), max_bytes=max_bytes, max_seconds=max_seconds))


@pytest.fixture
async def pages() -> AsyncIterator[PageServer]:
    async with PageServer() as server:
        yield server


class FakeResolver:
    """Replaces the resolver: returns each name's addresses one after the other, and the last ones from then on."""

    def __init__(self, **addresses: list[list[str]]) -> None:
        self.addresses = {name.replace("_", "."): list(given) for name, given in addresses.items()}
        self.asked: list[str] = []

    def getaddrinfo(self, host: str, port: int, _family: int, _kind: int) -> list[tuple[object, ...]]:
        self.asked.append(host)
        found = self.addresses[host]
        addresses = found.pop(0) if len(found) > 1 else found[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]


def resolve_with(monkeypatch: pytest.MonkeyPatch, names: FakeResolver) -> None:
    monkeypatch.setattr(address_check, "_NAME_LOOKUP", NameLookup(names.getaddrinfo))


async def test_html_is_converted_to_markdown(pages: PageServer) -> None:
    pages.responses["/tea/menu"] = ok(HTML, "text/html; charset=utf-8")
    text = await web().fetch(pages.url("/tea/menu"))
    head, title, blank, *rest = text.splitlines()
    assert head == f"{pages.url('/tea/menu')} (text/html, {len(HTML)} bytes)"
    assert (title, blank) == ("Title: Tea & cake", "")
    assert rest[0] == "# Menu"
    assert f"We have **scones** and [cakes]({pages.url('/tea/cakes?all=1')})." in text
    assert "| scone | 3 |" in text
    assert "alert" not in text
    assert "color" not in text


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b'{"a": [1, 2]}', "application/json", '{"a": [1, 2]}'),
        (b'{"title": "x"}', "application/problem+json", '{"title": "x"}'),
        (b"<a><b/></a>", "application/xml", "<a><b/></a>"),
        (b"plain <b>text</b>", "text/plain", "plain <b>text</b>"),
        (b"no type", "", "no type"),
        ("schön".encode("latin-1"), "text/plain; charset=ISO-8859-1", "schön"),
        ("schön".encode(), "text/plain; charset=nonsense", "schön"),
        ("schön".encode("utf-16"), "text/plain", "schön"),
        (b"broken \xff\x00\xfe bytes", "text/plain; charset=utf-16", "\ufffd"),
        ("<meta charset='latin1'><p>schön".encode("latin-1"), "text/html", "schön"),
        (b"", "text/plain", "[no text]"),
    ],
)
async def test_text_is_returned_unchanged(pages: PageServer, body: bytes, content_type: str, expected: str) -> None:
    pages.responses["/"] = ok(body, content_type)
    if "utf-16" in content_type:
        with pytest.raises(ToolFailure, match="reads only"):
            await web().fetch(pages.url())
        return
    assert (await web().fetch(pages.url())).endswith(expected)


@pytest.mark.parametrize("content_type", ["image/png", "application/pdf", "application/octet-stream", "video/mp4"])
async def test_other_types_are_refused(pages: PageServer, content_type: str) -> None:
    pages.responses["/"] = ok(b"\x89PNG", content_type)
    with pytest.raises(ToolFailure, match=f"has the type {content_type}. web_fetch reads only HTML"):
        await web().fetch(pages.url())


async def test_an_endless_body_is_truncated_with_a_notice(pages: PageServer) -> None:
    pages.responses["/"] = endless
    text = await web(max_bytes=50_000).fetch(pages.url())
    assert "[truncated: only the first 50000 bytes were read]" in text
    assert text.count("more") == 10_000
    await asyncio.wait_for(pages.disconnected.wait(), 1)


async def test_compressed_responses(pages: PageServer) -> None:
    pages.responses["/"] = ok(gzip.compress(b"unpacked"), extra="content-encoding: gzip\r\n")
    assert (await web().fetch(pages.url())).endswith("unpacked")
    assert pages.seen[0].headers["accept-encoding"] == "gzip"
    bomb = gzip.compress(bytes(b"x" * 50_000_000))
    pages.responses["/bomb"] = ok(bomb, extra="content-encoding: gzip\r\n")
    assert len(bomb) < 100_000
    before = psutil.Process().memory_info().rss
    assert "only the first 20000 bytes" in await web(max_bytes=20_000).fetch(pages.url("/bomb"))
    assert psutil.Process().memory_info().rss - before < 20_000_000
    pages.responses["/br"] = ok(b"\x0b\x02\x80hello\x03", extra="content-encoding: br\r\n")
    with pytest.raises(ToolFailure, match="encoding 'br'"):
        await web().fetch(pages.url("/br"))
    pages.responses["/broken"] = ok(b"no gzip at all", extra="content-encoding: gzip\r\n")
    with pytest.raises(ToolFailure, match="could not be fetched"):
        await web().fetch(pages.url("/broken"))


async def test_the_total_time_is_limited(pages: PageServer) -> None:
    async def dripping(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.02)

    pages.responses |= {"/silent": silent, "/dripping": dripping}
    for path in pages.responses:
        begun = time.monotonic()
        with pytest.raises(ToolFailure, match=r"took longer than 0\.2 s"):
            await web(max_seconds=0.2).fetch(pages.url(path))
        assert time.monotonic() - begun < 20


async def test_errors_show_the_servers_response(pages: PageServer) -> None:
    pages.responses["/gone"] = ok(b'{"error": "moved to v2"}', "application/json", status="410 Gone")
    with pytest.raises(ToolFailure) as failed:
        await web().fetch(pages.url("/gone"))
    assert str(failed.value) == f'{pages.url("/gone")} responded with 410 Gone.\n\n{{"error": "moved to v2"}}'
    pages.responses["/broken"] = ok(b"\x00\x01", "image/png", status="500 Oh")
    with pytest.raises(ToolFailure, match=r"responded with 500 Oh\.$"):
        await web().fetch(pages.url("/broken"))


async def test_redirects_are_followed_and_the_final_url_is_shown(pages: PageServer) -> None:
    pages.responses |= {"/a": redirect("/b?x=1"), "/b": redirect(pages.url("/c#part")), "/c": ok(b"here")}
    text = await web().fetch(pages.url("/a"))
    assert text.startswith(pages.url("/c"))
    assert [seen.target for seen in pages.seen] == ["/a", "/b?x=1", "/c"]
    pages.responses["/loop"] = redirect("/loop")
    with pytest.raises(ToolFailure, match="more than 5 redirects"):
        await web().fetch(pages.url("/loop"))


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("http://127.0.0.2:{port}/secret", "127.0.0.2, which is not a public internet address"),
        ("http://0x7f.0.0.2:{port}/secret", "127.0.0.2, which is not a public internet address"),
        ("http://[::ffff:127.0.0.2]:{port}/secret", "not a public internet address"),
        ("http://user:pw@127.0.0.1:{port}/secret", "user name or password"),
        ("file:///etc/passwd", "is not an http or https URL"),
        ("gopher://127.0.0.1:{port}/_x", "is not an http or https URL"),
    ],
)
async def test_each_redirect_is_checked(location: str, why: str) -> None:
    async with PageServer(host="0.0.0.0") as pages:
        pages.responses |= {"/": redirect(location.format(port=pages.port)), "/secret": ok(b"secret")}
        with pytest.raises(ToolFailure, match=why):
            await web().fetch(pages.url(host="127.0.0.1"))
        assert [seen.target for seen in pages.seen] == ["/"]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("example.com", "is not an http or https URL"),
        ("ftp://example.com/x", "is not an http or https URL"),
        ("http:///x", "is not an http or https URL"),
        ("http://user@example.com/", "user name or password"),
        ("http://127.0.0.1:99999/", "an invalid port"),
        ("http://[::1", "could not be fetched"),
        ("http://name.invalid/", "cannot be resolved"),
        ("http://a..b/", "could not be fetched|cannot be resolved"),
        ("http://localhost:1/", "not a public internet address"),
        ("http://127.1:1/", "resolves to 127.0.0.1, which is not"),
        ("http://2130706433:1/", "resolves to 127.0.0.1, which is not"),
        ("http://169.254.169.254/latest/meta-data/", "not a public internet address"),
        ("http://[fd00:ec2::254]/", "not a public internet address"),
    ],
)
async def test_invalid_and_internal_urls_are_refused(url: str, why: str) -> None:
    with pytest.raises(ToolFailure, match=why):
        await web("192.0.2.1").fetch(url)


async def test_a_closed_port_is_reported(pages: PageServer) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(ToolFailure, match="could not be fetched"):
            await web().fetch(f"http://127.0.0.1:{port}/")


async def test_a_name_is_looked_up_once(pages: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves differently the second time is not resolved a second time."""
    names = FakeResolver(rebind_test=[["127.0.0.1"], ["127.0.0.2"]])
    resolve_with(monkeypatch, names)
    pages.responses["/"] = ok(b"hello")
    assert (await web().fetch(pages.url(host="rebind.test"))).endswith("hello")
    assert names.asked == ["rebind.test"]
    assert pages.seen[0].headers["host"] == f"rebind.test:{pages.port}"
    with pytest.raises(ToolFailure, match=r"rebind\.test resolves to 127\.0\.0\.2"):
        await web().fetch(pages.url(host="rebind.test"))


async def test_one_internal_address_among_public_ones_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_with(monkeypatch, FakeResolver(mixed_test=[["93.184.216.34", "10.0.0.1"]]))
    with pytest.raises(ToolFailure, match=r"mixed\.test resolves to 10\.0\.0\.1"):
        await web().fetch("http://mixed.test/")


async def test_a_host_may_be_allowed_by_name_and_its_second_address_is_tried(
    pages: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_with(monkeypatch, FakeResolver(wiki_test=[["127.0.0.3", "127.0.0.1"]], other_test=[["127.0.0.1"]]))
    pages.responses["/"] = ok(b"hello")
    assert (await web("wiki.test").fetch(pages.url(host="wiki.test"))).endswith("hello")
    with pytest.raises(ToolFailure, match=r"other\.test resolves to"):
        await web("wiki.test").fetch(pages.url(host="other.test"))


async def test_no_proxy_or_cookie_is_used(pages: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    pages.responses |= {
        "/": redirect("/next", extra="set-cookie: a=b; Path=/\r\n"),
        "/next": ok(b"x", extra="set-cookie: c=d\r\n"),
    }
    reader = web()
    for _ in range(2):
        await reader.fetch(pages.url())
    assert len(pages.seen) == 4
    for seen in pages.seen:
        assert seen.method == "GET"
        assert sorted(seen.headers) == [
            "accept",
            "accept-encoding",
            "accept-language",
            "connection",
            "host",
            "user-agent",
        ]


async def test_a_certificate_is_checked_against_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl program to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=x"
    named = ["-addext", "subjectAltName=DNS:pinned.test", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *options.split(), *named], check=True, capture_output=True)  # noqa: ASYNC221 - a moment
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    resolve_with(monkeypatch, FakeResolver(pinned_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]]))
    trusted = ssl.create_default_context(cafile=certificate)
    trusting = Downloader(AddressPolicy(["127.0.0.1"]), max_bytes=1000, max_seconds=5, tls=trusted)
    async with PageServer({"/": ok(b"hello")}, tls=serving) as pages:
        with pytest.raises(ToolFailure, match=r"could not be fetched.*self.signed"):
            await web().fetch(pages.url(host="pinned.test", scheme="https"))
        assert (await trusting.download_page(pages.url(host="pinned.test", scheme="https"))).data == b"hello"
        with pytest.raises(ToolFailure, match=r"could not be fetched.*not valid for 'other\.test'"):
            await trusting.download_page(pages.url(host="other.test", scheme="https"))


async def test_a_hostile_page_does_not_block_the_worker() -> None:
    """The conversion does not block the worker, and an interrupt ends it."""
    hostile, before = "<blockquote>" * 60_000, psutil.Process().children()
    working = asyncio.create_task(html_conversion.to_markdown(hostile, "http://x/"))
    longest, last = 0.0, time.monotonic()
    for _ in range(20):
        await asyncio.sleep(0.01)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    assert len(psutil.Process().children()) == len(before) + 1
    assert not working.done()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert psutil.Process().children() == before
    assert longest < 1


async def test_html_that_breaks_the_converter_is_a_failed_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, before = tmp_path / "breaks.py", psutil.Process().children()
    program.write_text("import os; os.abort()")
    monkeypatch.setattr(html_conversion, "_PROGRAM", str(program))
    with pytest.raises(ToolFailure, match="could not be converted"):
        await html_conversion.to_markdown("<p>x", "http://x/")
    program.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(html_conversion, "_MAX_SECONDS", 0.2)
    with pytest.raises(ToolFailure, match=r"within 0\.2 s"):
        await html_conversion.to_markdown("<p>x", "http://x/")
    assert psutil.Process().children() == before
