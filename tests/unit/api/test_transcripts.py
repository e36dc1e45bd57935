"""Import and export of transcripts over HTTP."""

import json
from typing import Any

import httpx2
import pytest

from footplate.api.requests import json_lines_spool

from .conftest import Api, make_client

PROMPT = {
    "type": "user",
    "uuid": "a",
    "parentUuid": None,
    "sessionId": "s",
    "message": {"role": "user", "content": "Hello"},
}
RESPONSE = {
    "type": "assistant",
    "uuid": "b",
    "parentUuid": "a",
    "message": {
        "role": "assistant",
        "id": "m",
        "model": "claude-sonnet-5",
        "content": [{"type": "text", "text": "Hi"}],
    },
}


async def _first(http: httpx2.AsyncClient, harness: str = "claude") -> dict[str, Any]:
    agent = await http.post("/v1/agents", json={"name": "a", "model": "claude-sonnet-5", "harness": harness})
    name = f"e-{agent.json()['id']}"
    environment = await http.post("/v1/environments", json={"name": name, "config": {"type": "cloud"}})
    return {"agent": agent.json()["id"], "environment_id": environment.json()["id"]}


async def _import(http: httpx2.AsyncClient, first: Any, *lines: Any, **headers: str) -> httpx2.Response:
    body = b"".join(json.dumps(line).encode() + b"\n" for line in (first, *lines))
    return await http.post("/v1/sessions/import", content=body, headers=headers)


LINES = ({"line": PROMPT}, {"line": RESPONSE}, {"line": RESPONSE, "subpath": "subagents/agent-1"})


async def test_a_transcript_is_imported_and_exported(http: httpx2.AsyncClient) -> None:
    first = await _first(http)
    made = await _import(http, {**first, "title": "Mine", "visibility": "private"}, *LINES)
    assert (made.status_code, made.json()["title"], made.json()["status"]) == (200, "Mine", "idle")
    assert made.json()["visibility"] == "private"
    session = made.json()["id"]
    listed = (await http.get(f"/v1/sessions/{session}/events")).json()["data"]
    assert [event["type"] for event in listed] == ["user.message", "agent.message"]
    response = await http.get(f"/v1/sessions/{session}/transcript")
    assert response.headers["content-type"].startswith("application/x-ndjson")
    head, *lines, end = map(json.loads, response.text.splitlines())
    assert (head["type"], end) == ("transcript", {"type": "end", "lines": 3})
    assert [line["line"]["uuid"] for line in lines] == ["a", "b", "b"]
    assert lines[2]["subpath"] == "subagents/agent-1"
    assert {line["line"]["sessionId"] for line in lines} == {head["transcript_id"]}


async def test_the_same_transcript_is_the_same_session(http: httpx2.AsyncClient, api: Api) -> None:
    first = await _first(http)
    one = await _import(http, first, *LINES, **{"idempotency-key": "k"})
    again = await _import(http, first, *LINES, **{"idempotency-key": "k"})
    later = await _import(http, {**first, "title": "Other"}, *LINES)
    more = await _import(http, first, *LINES, LINES[1])
    assert one.json()["id"] == again.json()["id"] == later.json()["id"] != more.json()["id"]
    async with make_client(api.app, "secret-b") as stranger:
        theirs = await _import(stranger, await _first(stranger), *LINES)
        assert theirs.json()["id"] != one.json()["id"]


async def test_transcripts_of_other_organisations_are_not_found(http: httpx2.AsyncClient, api: Api) -> None:
    first = await _first(http)
    made = await _import(http, first, *LINES)
    async with make_client(api.app, "secret-b") as stranger:
        assert (await stranger.get(f"/v1/sessions/{made.json()['id']}/transcript")).status_code == 404
        own = await _first(stranger)
        for name in ("agent", "environment_id"):
            assert (await _import(stranger, {**own, name: first[name]}, *LINES)).status_code == 404


async def test_an_invalid_transcript_is_refused_and_not_stored(http: httpx2.AsyncClient, api: Api) -> None:
    first = await _first(http)
    cases: list[tuple[list[Any], str]] = [
        ([], "contains no messages"),
        ([*LINES, {"line": 7}], "Line 4 is not a valid transcript line"),
        ([*LINES, {"line": PROMPT, "path": "x"}], "Line 4 is not a valid transcript line"),
        ([{"line": {"no": "type"}}], "Line 1 is not a valid transcript line"),
        ([*LINES, {"line": PROMPT, "subpath": "../x"}], "not a valid subpath"),
    ]
    for lines, why in cases:
        response = await _import(http, first, *lines)
        assert (response.status_code, why in response.json()["error"]["message"]) == (400, True), response.text
    torn = json.dumps(first).encode() + b'\n{"line": {"type": "us'
    response = await http.post("/v1/sessions/import", content=torn)
    assert (response.status_code, response.json()["error"]["field"]) == (400, "lines.1")
    large = await _import(http, first, {"line": {**PROMPT, "x": "y" * 1_000_001}})
    assert large.status_code == 413
    assert api.world.sessions == {}


async def test_a_harness_without_transcripts_is_refused(http: httpx2.AsyncClient) -> None:
    first = await _first(http, "native")
    refused = await _import(http, first, *LINES)
    assert (refused.status_code, refused.json()["error"]["field"]) == (400, "agent")
    session = (await http.post("/v1/sessions", json=first)).json()["id"]
    response = await http.get(f"/v1/sessions/{session}/transcript")
    assert response.status_code == 400
    assert "'native'" in response.json()["error"]["message"]


async def test_a_transcript_of_too_many_lines_is_refused(
    api: Api, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines_spool, "MAX_LINES", 2)
    response = await _import(http, await _first(http), *LINES)
    assert (response.status_code, response.json()["error"]["field"]) == (400, "lines")
    assert api.world.sessions == {}
