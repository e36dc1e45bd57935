"""The shared client rejects every response and frame that the SDK's models do not allow but its client would accept."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from bench.support.response_validation import FRAMES, Frame, SseReader, ValidationLedger

MOMENT = "2026-11-01T10:00:00Z"
IDLE = {
    "id": "sevt_1",
    "type": "session.status_idle",
    "stop_reason": {"type": "end_turn"},
    "processed_at": MOMENT,
}


def _frame(data: dict[str, Any], event: str | None = None, number: int = 1) -> bytes:
    return f"event: {event or data['type']}\nid: {number}\ndata: {json.dumps(data)}\n\n".encode()


def test_frames_are_complete_wherever_they_are_cut() -> None:
    raw = b": keep-alive\n\n" + _frame(IDLE) + b"event: ping\ndata: {}\n\n" + _frame(IDLE, number=2)
    for size in (1, 7, len(raw)):
        ledger = ValidationLedger()
        reader = SseReader(ledger)
        frames = [frame for start in range(0, len(raw), size) for frame in reader.feed(raw[start : start + size])]
        assert frames == [Frame("1", IDLE), Frame("2", IDLE)]
        assert ledger.validated == 2


@pytest.mark.parametrize(
    "raw",
    [
        _frame({**IDLE, "stop_reason": {"type": "bored"}}),
        _frame({**IDLE, "type": "session.poem"}),
        _frame({name: value for name, value in IDLE.items() if name != "id"}),
        _frame(IDLE, event="session.status_running"),
        b"id: 1\ndata: {}\n\n",
    ],
    ids=["literal", "type", "missing", "name", "nameless"],
)
def test_a_wrong_frame_is_refused(raw: bytes) -> None:
    with pytest.raises(AssertionError):
        list(SseReader(ValidationLedger()).feed(raw))


@pytest.mark.parametrize(
    "body",
    [
        {"type": "session", "id": "sesn_1"},
        {"data": [IDLE, {**IDLE, "id": None}], "next_page": None},
        {"type": "error", "error": {"type": "poem_error", "message": "m"}, "request_id": "req_1"},
        {"type": "error", "error": {"type": "api_error", "message": "m"}},
    ],
)
def test_an_invalid_response_is_refused_and_recorded(body: dict[str, Any]) -> None:
    ledger = ValidationLedger()
    with pytest.raises(AssertionError):
        ledger.check_body(body)
    assert len(ledger.mismatches) == 1


def test_valid_responses_are_counted() -> None:
    ledger = ValidationLedger()
    ledger.check_body({"data": [IDLE, IDLE], "next_page": None})
    ledger.check_body({"type": "error", "error": {"type": "conflict_error", "message": "m"}, "request_id": "req_1"})
    ledger.check_body({"type": "turn", "id": "turn_1"})
    assert (ledger.validated, ledger.resources, ledger.mismatches) == (2, {"error": 1}, [])


async def test_every_response_of_a_client_is_checked() -> None:
    class Bytes(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield _frame(IDLE)
            yield _frame({**IDLE, "id": 7})

    async def respond(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/stream":
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Bytes())
        return httpx2.Response(200, json={"type": "session"})

    ledger = ValidationLedger()
    async with httpx2.AsyncClient(
        transport=httpx2.MockTransport(respond), base_url="http://x", event_hooks={"response": [ledger.hook]}
    ) as client:
        with pytest.raises(AssertionError):
            await client.get("/session")
        async with client.stream("GET", "/stream") as response:
            chunks = response.aiter_bytes()
            assert await anext(chunks) == _frame(IDLE)
            assert response.extensions[FRAMES].popleft().data == IDLE
            with pytest.raises(AssertionError):
                await anext(chunks)
    assert len(ledger.mismatches) == 2
