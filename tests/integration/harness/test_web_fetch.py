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

from footplate.domain.addresses import Reach
from footplate.domain.name_lookup import NameLookup
from footplate.domain.ports import WebAccess
from footplate.harness import reaching
from footplate.harness.native.failure import ToolFailure
from footplate.harness.native.web import convert
from footplate.harness.native.web.access import Web
from footplate.harness.native.web.download import Downloads

from .pages import Pages, endless, moved, ok, silent

pytestmark = pytest.mark.timing

HTML = b"""<!doctype html><html><head><title>Tea &amp; cake</title><style>p {color: red}</style></head><body>
<nav><a href="/">Home</a></nav><h1>Menu</h1><p>We have <b>scones</b> and <a href="cakes?all=1">cakes</a>.</p>
<script>alert("no")</script><table><tr><th>what</th><th>price</th></tr><tr><td>scone</td><td>3</td></tr></table>
</body></html>"""


def web(*allow: str, max_bytes: int = 100_000, max_seconds: float = 5) -> Web:
    return Web(WebAccess(allow=allow or ("127.0.0.1",), max_bytes=max_bytes, max_seconds=max_seconds))


@pytest.fixture
async def pages() -> AsyncIterator[Pages]:
    async with Pages() as server:
        yield server


class Names:
    """Replaces the resolver: returns each name's addresses one after the other, and the last ones from then on."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self.answers = {name.replace("_", "."): list(given) for name, given in answers.items()}
        self.asked: list[str] = []

    def getaddrinfo(self, host: str, port: int, _family: int, _kind: int) -> list[tuple[object, ...]]:
        self.asked.append(host)
        found = self.answers[host]
        addresses = found.pop(0) if len(found) > 1 else found[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]


def resolve_with(monkeypatch: pytest.MonkeyPatch, names: Names) -> None:
    monkeypatch.setattr(reaching, "_NAMES", NameLookup(names.getaddrinfo))


async def test_html_is_made_readable(pages: Pages) -> None:
    pages.answers["/tea/menu"] = ok(HTML, "text/html; charset=utf-8")
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
async def test_text_is_read_as_it_is(pages: Pages, body: bytes, content_type: str, expected: str) -> None:
    pages.answers["/"] = ok(body, content_type)
    if "utf-16" in content_type:
        with pytest.raises(ToolFailure, match="reads only"):
            await web().fetch(pages.url())
        return
    assert (await web().fetch(pages.url())).endswith(expected)


@pytest.mark.parametrize("content_type", ["image/png", "application/pdf", "application/octet-stream", "video/mp4"])
async def test_other_types_are_refused(pages: Pages, content_type: str) -> None:
    pages.answers["/"] = ok(b"\x89PNG", content_type)
    with pytest.raises(ToolFailure, match=f"is {content_type}. web_fetch reads only HTML"):
        await web().fetch(pages.url())


async def test_a_body_without_end_is_cut_and_says_so(pages: Pages) -> None:
    pages.answers["/"] = endless
    text = await web(max_bytes=50_000).fetch(pages.url())
    assert "[truncated: only the first 50000 bytes were read]" in text
    assert text.count("more") == 10_000
    await asyncio.wait_for(pages.left.wait(), 1)


async def test_packed_answers(pages: Pages) -> None:
    pages.answers["/"] = ok(gzip.compress(b"unpacked"), extra="content-encoding: gzip\r\n")
    assert (await web().fetch(pages.url())).endswith("unpacked")
    assert pages.seen[0].headers["accept-encoding"] == "gzip"
    bomb = gzip.compress(bytes(b"x" * 50_000_000))
    pages.answers["/bomb"] = ok(bomb, extra="content-encoding: gzip\r\n")
    assert len(bomb) < 100_000
    before = psutil.Process().memory_info().rss
    assert "only the first 20000 bytes" in await web(max_bytes=20_000).fetch(pages.url("/bomb"))
    assert psutil.Process().memory_info().rss - before < 20_000_000
    pages.answers["/br"] = ok(b"\x0b\x02\x80hello\x03", extra="content-encoding: br\r\n")
    with pytest.raises(ToolFailure, match="encoding 'br'"):
        await web().fetch(pages.url("/br"))
    pages.answers["/broken"] = ok(b"no gzip at all", extra="content-encoding: gzip\r\n")
    with pytest.raises(ToolFailure, match="could not be fetched"):
        await web().fetch(pages.url("/broken"))


async def test_time_is_limited_over_all(pages: Pages) -> None:
    async def dripping(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.02)

    pages.answers |= {"/silent": silent, "/dripping": dripping}
    for path in pages.answers:
        begun = time.monotonic()
        with pytest.raises(ToolFailure, match=r"took longer than 0\.2 s"):
            await web(max_seconds=0.2).fetch(pages.url(path))
        assert time.monotonic() - begun < 20


async def test_errors_show_what_the_server_said(pages: Pages) -> None:
    pages.answers["/gone"] = ok(b'{"error": "moved to v2"}', "application/json", status="410 Gone")
    with pytest.raises(ToolFailure) as failed:
        await web().fetch(pages.url("/gone"))
    assert str(failed.value) == f'{pages.url("/gone")} responded with 410 Gone.\n\n{{"error": "moved to v2"}}'
    pages.answers["/broken"] = ok(b"\x00\x01", "image/png", status="500 Oh")
    with pytest.raises(ToolFailure, match=r"responded with 500 Oh\.$"):
        await web().fetch(pages.url("/broken"))


async def test_redirects_are_followed_and_the_end_is_told(pages: Pages) -> None:
    pages.answers |= {"/a": moved("/b?x=1"), "/b": moved(pages.url("/c#part")), "/c": ok(b"here")}
    text = await web().fetch(pages.url("/a"))
    assert text.startswith(pages.url("/c"))
    assert [seen.target for seen in pages.seen] == ["/a", "/b?x=1", "/c"]
    pages.answers["/loop"] = moved("/loop")
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
async def test_each_hop_is_checked(location: str, why: str) -> None:
    async with Pages(host="0.0.0.0") as pages:
        pages.answers |= {"/": moved(location.format(port=pages.port)), "/secret": ok(b"secret")}
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
async def test_what_is_not_fetched_at_all(url: str, why: str) -> None:
    with pytest.raises(ToolFailure, match=why):
        await web("192.0.2.1").fetch(url)


async def test_a_closed_port_is_told(pages: Pages) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(ToolFailure, match="could not be fetched"):
            await web().fetch(f"http://127.0.0.1:{port}/")


async def test_a_name_is_looked_up_once_and_that_address_is_used(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves differently the second time is not resolved a second time."""
    names = Names(rebind_test=[["127.0.0.1"], ["127.0.0.2"]])
    resolve_with(monkeypatch, names)
    pages.answers["/"] = ok(b"hello")
    assert (await web().fetch(pages.url(host="rebind.test"))).endswith("hello")
    assert names.asked == ["rebind.test"]
    assert pages.seen[0].headers["host"] == f"rebind.test:{pages.port}"
    with pytest.raises(ToolFailure, match=r"rebind\.test is at 127\.0\.0\.2"):
        await web().fetch(pages.url(host="rebind.test"))


async def test_one_internal_address_among_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_with(monkeypatch, Names(mixed_test=[["93.184.216.34", "10.0.0.1"]]))
    with pytest.raises(ToolFailure, match=r"mixed\.test is at 10\.0\.0\.1"):
        await web().fetch("http://mixed.test/")


async def test_a_host_may_be_allowed_by_name_and_its_second_address_is_tried(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_with(monkeypatch, Names(wiki_test=[["127.0.0.3", "127.0.0.1"]], other_test=[["127.0.0.1"]]))
    pages.answers["/"] = ok(b"hello")
    assert (await web("wiki.test").fetch(pages.url(host="wiki.test"))).endswith("hello")
    with pytest.raises(ToolFailure, match=r"other\.test is at"):
        await web("wiki.test").fetch(pages.url(host="other.test"))


async def test_nothing_of_this_process_goes_along(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    pages.answers |= {
        "/": moved("/next", extra="set-cookie: a=b; Path=/\r\n"),
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


async def test_a_certificate_is_held_against_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl program to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=x"
    named = ["-addext", "subjectAltName=DNS:pinned.test", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *options.split(), *named], check=True, capture_output=True)  # noqa: ASYNC221 - a moment
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    resolve_with(monkeypatch, Names(pinned_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]]))
    trusted = ssl.create_default_context(cafile=certificate)
    trusting = Downloads(Reach(["127.0.0.1"]), max_bytes=1000, max_seconds=5, tls=trusted)
    async with Pages({"/": ok(b"hello")}, tls=serving) as pages:
        with pytest.raises(ToolFailure, match=r"could not be fetched.*self.signed"):
            await web().fetch(pages.url(host="pinned.test", scheme="https"))
        assert (await trusting.page(pages.url(host="pinned.test", scheme="https"))).data == b"hello"
        with pytest.raises(ToolFailure, match=r"could not be fetched.*not valid for 'other\.test'"):
            await trusting.page(pages.url(host="other.test", scheme="https"))


async def test_a_hostile_page_wastes_only_its_own_process() -> None:
    """The conversion does not block the worker, and an interrupt ends it."""
    hostile, before = "<blockquote>" * 60_000, psutil.Process().children()
    working = asyncio.create_task(convert.to_markdown(hostile, "http://x/"))
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
    monkeypatch.setattr(convert, "_PROGRAM", str(program))
    with pytest.raises(ToolFailure, match="could not be converted"):
        await convert.to_markdown("<p>x", "http://x/")
    program.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(convert, "_SECONDS", 0.2)
    with pytest.raises(ToolFailure, match=r"within 0\.2 s"):
        await convert.to_markdown("<p>x", "http://x/")
    assert psutil.Process().children() == before
