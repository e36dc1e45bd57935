"""The guard refuses requests that a browser may have sent for the web page of another site."""

import pytest

from footplate.domain.network.host_and_origin_check import (
    ForeignRequest,
    GuardedApp,
    Message,
    Receive,
    RequestGuard,
    Scope,
    Send,
)

OPEN = RequestGuard.parse()
LISTED = RequestGuard.parse("footplate.example.com, *.internal", "https://app.example.com/")


def _passes(guard: RequestGuard, **headers: str) -> bool:
    try:
        guard.check((name.replace("_", "-"), value) for name, value in headers.items())
    except ForeignRequest:
        return False
    return True


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8700", "LOCALHOST.", "x.localhost:1", "127.0.0.1:8700", "[::1]:8700", "10.1.2.3", ""],
)
def test_loopback_names_and_addresses_are_accepted(host: str) -> None:
    assert _passes(OPEN, host=host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8700",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "localhost@evil.example",
        "evil.example#localhost",
        "127.0.0.1:8700/x",
        "[::1",
        "localhost:port",
        "notlocalhost",
    ],
)
def test_other_names_are_refused(host: str) -> None:
    assert not _passes(OPEN, host=host)


def test_the_operator_lists_names_and_origins() -> None:
    assert _passes(LISTED, host="footplate.example.com:443")
    assert _passes(LISTED, host="a.b.internal")
    assert not _passes(LISTED, host="internal")
    assert not _passes(LISTED, host="footplate.example.com.evil.example")
    assert _passes(LISTED, host="localhost", origin="https://app.example.com")
    assert not _passes(LISTED, host="localhost", origin="http://app.example.com")
    assert _passes(
        RequestGuard.parse("*", "*"), host="anything", origin="https://evil.example", sec_fetch_site="cross-site"
    )


@pytest.mark.parametrize(
    ("host", "origin", "passes"),
    [
        ("localhost:8700", "http://localhost:8700", True),
        ("localhost:8700", "http://localhost:3000", False),
        ("localhost:8700", "http://127.0.0.1:8700", False),
        ("localhost", "http://localhost:80", True),
        ("localhost:8700", "https://evil.example", False),
        ("localhost:8700", "null", False),
        ("localhost:8700", "file://", False),
        ("localhost:8700", "chrome-extension://abc", False),
        ("", "https://evil.example", False),
    ],
)
def test_only_the_servers_own_pages_may_send_requests(host: str, origin: str, *, passes: bool) -> None:
    assert _passes(OPEN, host=host, origin=origin) is passes


def test_cross_site_requests_without_an_origin_are_refused() -> None:
    assert not _passes(OPEN, host="localhost", sec_fetch_site="cross-site")
    assert not _passes(OPEN, host="localhost", sec_fetch_site="same-site")
    assert _passes(OPEN, host="localhost", sec_fetch_site="none")
    assert _passes(OPEN, host="localhost", sec_fetch_site="same-origin")


def test_two_hosts_are_refused() -> None:
    with pytest.raises(ForeignRequest, match="more than one"):
        OPEN.check([("host", "localhost"), ("host", "evil.example")])


@pytest.mark.parametrize(
    ("scope", "sent"),
    [
        ({"type": "http"}, ["http.response.start", "http.response.body"]),
        ({"type": "websocket"}, ["websocket.close"]),
        (
            {"type": "websocket", "extensions": {"websocket.http.response": {}}},
            ["websocket.http.response.start", "websocket.http.response.body"],
        ),
    ],
)
async def test_the_application_is_not_reached(scope: Scope, sent: list[str]) -> None:
    messages: list[Message] = []

    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise AssertionError

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        messages.append(message)

    scope["headers"] = [(b"host", b"localhost"), (b"Origin", b"https://evil.example")]
    await GuardedApp(app, OPEN)(scope, receive, send)
    assert [message["type"] for message in messages] == sent
    assert messages[0].get("status", 403) == 403
