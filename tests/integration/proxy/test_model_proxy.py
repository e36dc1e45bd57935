"""The model proxy: authentication, forwarding of requests and responses, and ending both sides together."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from tests.integration.proxy.conftest import KEY, Provider, make_client, run_server, send_response

from footplate.domain.ports.engine import ModelGrant
from footplate.domain.ports.harness import Endpoint
from footplate.harness.native.requests.sdk_transport import HttpxModelTransport
from footplate.lease_clock import lease_clock
from footplate.proxy.model_proxy import ModelProxy
from footplate.testing import ScriptedModel, replies, text

pytestmark = pytest.mark.timing

MESSAGES = "/v1/messages"


def without_token(proxy: ModelProxy, **headers: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=proxy.endpoints["anthropic"].base_url or "", headers=headers, trust_env=False)


# Authentication


@pytest.mark.requirement("K12")
async def test_the_key_replaces_the_token(client: httpx2.AsyncClient, provider: Provider) -> None:
    response = await client.post(MESSAGES, json={"a": 1}, params={"beta": "true"})
    assert (response.status_code, response.json()) == (200, {"fine": True})
    assert provider.seen[-1]["query_string"] == b"beta=true"
    assert [value for name, value in provider.headers if name in {"x-api-key", "authorization"}] == [KEY]
    assert client.headers["x-api-key"] not in str(provider.seen)


async def test_a_bearer_token_becomes_a_bearer_key(grant: ModelGrant, proxy: ModelProxy, provider: Provider) -> None:
    token = grant.endpoints["openai"].api_key
    async with without_token(proxy, authorization=f"Bearer {token}") as client:
        await client.post(f"{grant.endpoints['openai'].base_url}/responses", json={})
    assert provider.seen[-1]["path"] == "/v1/responses"
    assert dict(provider.headers)["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("token", ["", "fpt", "fpt-00-x", KEY, "fpt-é"])
async def test_an_unknown_token_is_refused(proxy: ModelProxy, provider: Provider, token: str) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client:
        url = f"{proxy.endpoints['anthropic'].base_url}{MESSAGES}"
        response = await client.post(url, json={}, headers=[(b"x-api-key", token.encode())])
    assert response.status_code == 401
    assert response.json()["error"]["type"] == "authentication_error"
    assert provider.seen == []


@pytest.mark.parametrize("header", [("host", "evil.example"), ("origin", "https://evil.example")])
async def test_a_web_page_is_refused(loopback: httpx2.AsyncClient, provider: Provider, header: tuple[str, str]) -> None:
    response = await loopback.post(MESSAGES, json={}, headers=[header])
    assert response.status_code == 403
    assert provider.seen == []


async def test_a_wrong_token_of_a_turn_is_refused(grant: ModelGrant, proxy: ModelProxy, provider: Provider) -> None:
    token = grant.endpoints["anthropic"].api_key
    for wrong in (token[:-1], token + "x", "-".join(token.split("-")[:2])):
        async with without_token(proxy, **{"x-api-key": wrong}) as client:
            assert (await client.post(MESSAGES, json={})).status_code == 401
    assert provider.seen == []


async def test_two_credentials_are_refused(client: httpx2.AsyncClient, provider: Provider) -> None:
    both = {"authorization": f"Bearer {client.headers['x-api-key']}"}
    assert (await client.post(MESSAGES, json={}, headers=both)).status_code == 401
    assert provider.seen == []


async def test_a_token_ends_with_its_turn(client: httpx2.AsyncClient, grant: ModelGrant, provider: Provider) -> None:
    assert (await client.post(MESSAGES, json={})).status_code == 200
    await grant.aclose()
    assert (await client.post(MESSAGES, json={})).status_code == 401
    assert len(provider.seen) == 1


async def test_a_token_is_unavailable_while_its_lease_is_over(proxy: ModelProxy, provider: Provider) -> None:
    grant = proxy.grant(deadline=lease_clock() - 1)
    async with without_token(proxy, **{"x-api-key": grant.endpoints["anthropic"].api_key}) as client:
        response = await client.post(MESSAGES, json={})
        # Not 401: that would end the turn permanently, but a delayed turn is to be retried.
        assert response.status_code == 503
        assert provider.seen == []
        grant.renew(lease_clock() + 60)
        assert (await client.post(MESSAGES, json={})).status_code == 200
    await grant.aclose()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/anthropic/v1/files"),
        ("POST", "/anthropic/v1/messages/batches"),
        ("GET", "/anthropic/v1/messages"),
        ("POST", "/anthropic/v1/messages/"),
        ("POST", "/anthropic/v1/%6dessages"),
        ("POST", "/anthropic/v1/messages/../files"),
        ("GET", "/anthropic/v1/models/../organizations"),
        ("GET", "/openai/responses/resp_1"),
        ("POST", "/openai/v1/chat/completions"),
        ("POST", "/google/v1/messages"),
        ("POST", "/v1/messages"),
        ("GET", "/"),
    ],
)
async def test_only_model_requests_are_forwarded(
    proxy: ModelProxy, grant: ModelGrant, provider: Provider, method: str, path: str
) -> None:
    base = httpx2.URL(proxy.endpoints["anthropic"].base_url or "")
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {grant.endpoints['anthropic'].api_key}\r\n"
    reader, writer = await asyncio.open_connection(base.host, base.port)
    writer.write(f"{head}connection: close\r\ncontent-length: 2\r\n\r\n{{}}".encode())
    response = await reader.read()
    writer.close()
    assert b" 404 " in response.splitlines()[0]
    assert provider.seen == []


# Forwarding


async def test_headers_that_a_client_must_not_set_are_removed(client: httpx2.AsyncClient, provider: Provider) -> None:
    headers = {
        "cookie": "a=b",
        "proxy-authorization": "Basic eDp5",
        "openai-organization": "other",
        "connection": "keep-alive, x-hop",
        "x-hop": "1",
        "te": "trailers",
        "anthropic-beta": "kept",
        "user-agent": "kept",
    }
    await client.post(MESSAGES, json={}, headers=headers)
    names = {name for name, _ in provider.headers}
    assert names & set(headers) <= {"anthropic-beta", "user-agent", "connection"}
    assert dict(provider.headers)["user-agent"] == "kept"


async def test_status_and_headers_of_an_error_are_forwarded(client: httpx2.AsyncClient, provider: Provider) -> None:
    async def limit(_scope: Any, _receive: Any, send: Any) -> None:
        await send_response(
            send, 429, b'{"no": 1}', (b"retry-after", b"17"), (b"request-id", b"r1"), (b"set-cookie", b"a=b")
        )

    provider.behave = limit
    response = await client.post(MESSAGES, json={})
    assert (response.status_code, response.content) == (429, b'{"no": 1}')
    assert (response.headers["retry-after"], response.headers["request-id"]) == ("17", "r1")
    assert "set-cookie" not in response.headers


async def test_the_key_is_removed_from_a_providers_response(client: httpx2.AsyncClient, provider: Provider) -> None:
    async def repeat_key(_scope: Any, _receive: Any, send: Any) -> None:
        repeated = KEY.encode() + b" or " + KEY.replace('"', '\\"').encode()
        await send_response(send, 401, b"wrong key: " + repeated, (b"x-debug", KEY.encode()))

    provider.behave = repeat_key
    response = await client.post(MESSAGES, json={})
    assert response.content == b"wrong key: [removed] or [removed]"
    assert response.headers["x-debug"] == "[removed]"


async def test_a_redirect_is_forwarded_and_not_followed(client: httpx2.AsyncClient, provider: Provider) -> None:
    async def lead(_scope: Any, _receive: Any, send: Any) -> None:
        await send_response(send, 307, b"", (b"location", f"{provider.url}/elsewhere".encode()))

    provider.behave = lead
    assert (await client.post(MESSAGES, json={})).status_code == 307
    assert len(provider.seen) == 1


async def test_a_large_body_arrives_complete(client: httpx2.AsyncClient, provider: Provider) -> None:
    body = bytes(range(256)) * 120_000
    assert (await client.post(MESSAGES, content=body)).status_code == 200
    assert provider.bodies == [body]
    assert dict(provider.headers)["content-length"] == str(len(body))


async def test_chunks_are_forwarded_as_they_arrive(client: httpx2.AsyncClient, provider: Provider) -> None:
    arrived = asyncio.Event()

    async def drip(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for number in range(5):
            await send({"type": "http.response.body", "body": b"data: %d\n\n" % number, "more_body": True})
            await arrived.wait()  # the next one is sent only when this one has arrived
            arrived.clear()
        await send({"type": "http.response.body", "body": b""})

    provider.behave = drip
    pieces = []
    async with asyncio.timeout(10), client.stream("POST", MESSAGES, json={}) as response:
        async for piece in response.aiter_raw():
            pieces.append(piece)
            arrived.set()
    assert pieces == [b"data: %d\n\n" % number for number in range(5)]


async def test_compressed_responses_stay_compressed(client: httpx2.AsyncClient, provider: Provider) -> None:
    import gzip

    packed = gzip.compress(b'{"fine": 1}')

    async def pack(_scope: Any, _receive: Any, send: Any) -> None:
        await send_response(send, 200, packed, (b"content-encoding", b"gzip"))

    provider.behave = pack
    async with client.stream("POST", MESSAGES, json={}) as response:
        assert b"".join([piece async for piece in response.aiter_raw()]) == packed


# The end of one side ends the other


async def hang_until_gone(receive: Any, send: Any, gone: asyncio.Event) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"first", "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()


async def test_a_turn_that_ends_before_the_response_ends_the_request(
    client: httpx2.AsyncClient, grant: ModelGrant, provider: Provider
) -> None:
    gone = asyncio.Event()

    async def wait(_scope: Any, receive: Any, _send: Any) -> None:
        await grant.aclose()
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()

    provider.behave = wait
    assert (await client.post(MESSAGES, json={})).status_code == 503
    await asyncio.wait_for(gone.wait(), 5)


async def test_a_client_that_disconnects_ends_the_request(client: httpx2.AsyncClient, provider: Provider) -> None:
    gone = asyncio.Event()
    provider.behave = lambda _, receive, send: hang_until_gone(receive, send, gone)
    async with client.stream("POST", MESSAGES, json={}) as response:
        async for _ in response.aiter_raw():
            break
    await asyncio.wait_for(gone.wait(), 5)


async def test_a_client_that_disconnects_before_the_response_ends_the_request(
    client: httpx2.AsyncClient, provider: Provider
) -> None:
    gone = asyncio.Event()

    async def wait(_scope: Any, receive: Any, _send: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()

    provider.behave = wait
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.post(MESSAGES, json={}), 0.3)
    await asyncio.wait_for(gone.wait(), 5)


async def test_the_end_of_the_turn_ends_running_requests(
    client: httpx2.AsyncClient, grant: ModelGrant, provider: Provider
) -> None:
    gone = asyncio.Event()
    provider.behave = lambda _, receive, send: hang_until_gone(receive, send, gone)

    async def listen() -> None:
        async with client.stream("POST", MESSAGES, json={}) as response:
            async for _ in response.aiter_raw():
                await grant.aclose()

    with pytest.raises(httpx2.TransportError):
        await listen()
    await asyncio.wait_for(gone.wait(), 5)


async def test_buffered_chunks_are_not_delivered_after_the_end_of_the_turn(
    proxy: ModelProxy, grant: ModelGrant, provider: Provider
) -> None:
    """In process, chunks that arrived together are delivered without waiting."""

    async def all_at_once(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(50):
            await send({"type": "http.response.body", "body": b"piece", "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    provider.behave = all_at_once
    pieces = 0

    async def listen() -> None:
        nonlocal pieces
        async with (
            make_client(grant, HttpxModelTransport(proxy.in_process)) as client,
            client.stream("POST", MESSAGES) as response,
        ):
            await asyncio.sleep(0.2)
            async for _ in response.aiter_raw():
                pieces += 1
                await grant.aclose()

    with pytest.raises(httpx2.TransportError):
        await listen()
    assert pieces == 1


async def test_a_cut_response_stays_incomplete(client: httpx2.AsyncClient, provider: Provider) -> None:
    async def cut(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})

    provider.behave = cut
    with pytest.raises(httpx2.TransportError):
        await client.post(MESSAGES, json={})


async def test_an_unreachable_provider_is_reported() -> None:
    async with ModelProxy({"anthropic": Endpoint(KEY, "http://127.0.0.1:9/secret-place")}) as proxy:
        grant = proxy.grant(deadline=lease_clock() + 60)
        async with without_token(proxy, **{"x-api-key": grant.endpoints["anthropic"].api_key}) as client:
            response = await client.post(MESSAGES, json={})
        await grant.aclose()
    assert response.status_code == 502
    assert "could not be reached" in response.json()["error"]["message"]
    assert "secret-place" not in response.text


# A turn's own socket


async def test_a_turns_own_socket_accepts_no_other_token(
    proxy: ModelProxy, grant: ModelGrant, provider: Provider, tmp_path: Path
) -> None:
    path = tmp_path / ("long" * 40) / "model.sock"
    path.parent.mkdir()
    await grant.listen(path)
    other = proxy.grant(deadline=lease_clock() + 60)
    link = tmp_path / "l"
    link.symlink_to(path.parent)  # a client cannot name a path of this length

    async def ask(token: str) -> int:
        transport = httpx2.AsyncHTTPTransport(uds=str(link / "model.sock"))
        async with httpx2.AsyncClient(transport=transport, base_url="http://model") as client:
            return (await client.post(f"/anthropic{MESSAGES}", json={}, headers={"x-api-key": token})).status_code

    assert await ask(grant.endpoints["anthropic"].api_key) == 200
    assert await ask(other.endpoints["anthropic"].api_key) == 401
    await other.aclose()
    assert len(provider.seen) == 1


async def test_the_connections_of_a_turn_are_limited(grant: ModelGrant, tmp_path: Path) -> None:
    path = tmp_path / "model.sock"
    await grant.listen(path)
    opened = [await asyncio.open_unix_connection(path) for _ in range(80)]
    await asyncio.sleep(0.2)
    closed = [reader for reader, _ in opened if reader.at_eof()]
    for _, writer in opened:
        writer.close()
    assert len(closed) == 80 - 64


async def test_an_endless_request_head_is_refused(grant: ModelGrant, tmp_path: Path) -> None:
    path = tmp_path / "model.sock"
    await grant.listen(path)
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"POST /anthropic/v1/messages HTTP/1.1\r\n" + b"x: " + b"y" * 200_000)
    response = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    assert response.startswith(b"HTTP/1.1 4")


# The official clients


async def test_the_official_clients_stream_through_the_proxy() -> None:
    async with ScriptedModel({"hello": replies([text("Well, hello.", chunks=4)])}) as model:
        endpoints = {"anthropic": Endpoint(KEY, model.url), "openai": Endpoint(KEY, model.openai_url)}
        async with ModelProxy(endpoints) as proxy:
            grant = proxy.grant(deadline=lease_clock() + 60)
            ours, theirs = grant.endpoints["anthropic"], grant.endpoints["openai"]
            async with (
                AsyncAnthropic(api_key=ours.api_key, base_url=ours.base_url) as anthropic,
                anthropic.messages.stream(
                    model="claude-x", max_tokens=9, messages=[{"role": "user", "content": "[[script:hello]]"}]
                ) as stream,
            ):
                assert await stream.get_final_text() == "Well, hello."
            async with AsyncOpenAI(api_key=theirs.api_key, base_url=theirs.base_url) as openai:
                streamed = await openai.chat.completions.create(
                    model="gpt-x", messages=[{"role": "user", "content": "[[script:hello]]"}], stream=True
                )
                texts = [piece.choices[0].delta.content or "" async for piece in streamed if piece.choices]
            assert "".join(texts) == "Well, hello."
            await grant.aclose()
        assert [record.headers["authorization"] for record in model.requests()] == [f"Bearer {KEY}"] * 2


async def test_a_provider_without_a_key_is_not_available() -> None:
    async with run_server(Provider()) as url, ModelProxy({"anthropic": Endpoint(KEY, url)}) as proxy:
        assert list(proxy.endpoints) == ["anthropic"]
        grant = proxy.grant(deadline=lease_clock() + 60)
        base = (proxy.endpoints["anthropic"].base_url or "").removesuffix("anthropic")
        async with httpx2.AsyncClient(trust_env=False) as client:
            headers = {"x-api-key": grant.endpoints["anthropic"].api_key}
            response = await client.post(f"{base}openai/responses", json={}, headers=headers)
        await grant.aclose()
    assert (response.status_code, response.json()["error"]["message"]) == (
        404,
        "This worker has no connection 'openai'.",
    )


@pytest.mark.parametrize(
    "lengths",
    [
        "content-length: 2\r\ntransfer-encoding: chunked\r\n",
        "content-length: 2\r\ncontent-length: 9\r\n",
        "content-length: 2, 9\r\n",
    ],
)
async def test_a_request_with_two_lengths_is_refused(grant: ModelGrant, provider: Provider, lengths: str) -> None:
    endpoint = grant.endpoints["anthropic"]
    url = httpx2.URL(endpoint.base_url or "")
    reader, writer = await asyncio.open_connection(url.host, url.port)
    head = f"POST {url.path}{MESSAGES} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {endpoint.api_key}\r\n"
    writer.write(f"{head}{lengths}connection: close\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n".encode())
    async with asyncio.timeout(20):
        response = await reader.read()
    writer.close()
    assert response.startswith(b"HTTP/1.1 400 ")
    assert provider.seen == []
