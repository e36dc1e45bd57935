"""`GET /v1/sessions/{id}/diff`: the query, the summary, and the streamed patch."""

import asyncio

import httpx2
import pytest
from inline_snapshot import snapshot
from starlette.requests import ClientDisconnect
from starlette.types import Message

from footplate.api.streams.resource_stream_response import stream_resource
from footplate.api.wire.session.diffs import PATCH_MEDIA_TYPE
from footplate.domain.errors import Unavailable
from footplate.domain.files.snapshots import SCRATCH_TREE, FileChange, Snapshot, StoredSnapshot, TreeDiff
from footplate.domain.ports.api import DiffRequest, ForkPoint

from .conftest import Api

PATH = "/v1/sessions/sesn_1/diff"


def make_diff(name: str = SCRATCH_TREE, *, omitted: tuple[str, ...] = ()) -> TreeDiff:
    stored = StoredSnapshot(1, Snapshot("a" * 40), omitted=omitted)
    return TreeDiff(
        organisation="acme",
        session_id="sesn_1",
        ancestors=(),
        tree=name,
        name="app",
        is_additional=False,
        old=None,
        new=stored,
    )


@pytest.mark.requirement("C6", "R4")
async def test_a_summary_has_a_line_for_each_file(http: httpx2.AsyncClient, api: Api) -> None:
    api.diffs.found = [make_diff(omitted=("pipe: not a regular file or symbolic link",)), make_diff("proj_1")]
    api.diffs.files = [
        FileChange(path=b"caf\xe9", old_path=b"old", status="renamed", added=2, deleted=1),
        FileChange(path=b"x.png", status="added", added=None, deleted=None),
    ]
    body = (await http.get(PATH)).json()
    assert [found["project_id"] for found in body["trees"]] == [None, "proj_1"]
    states = body["trees"][0].pop("states")
    assert {state: (found["count"], found["added"], found["deleted"]) for state, found in states.items()} == snapshot(
        {"committed": (0, 0, 0), "staged": (1, 2, 1), "unstaged": (0, 0, 0), "untracked": (1, 0, 0)}
    )
    assert states["staged"]["files"] + states["untracked"]["files"] == body["trees"][0]["files"]
    assert body["trees"][0] == snapshot(
        {
            "project_id": None,
            "name": "app",
            "files": [
                {
                    "path": "caf\\xe9",
                    "old_path": "old",
                    "status": "renamed",
                    "added": 2,
                    "deleted": 1,
                    "binary": False,
                },
                {
                    "path": "x.png",
                    "old_path": None,
                    "status": "added",
                    "added": None,
                    "deleted": None,
                    "binary": True,
                },
            ],
            "added": 2,
            "deleted": 1,
            "left_out": ["pipe: not a regular file or symbolic link"],
        }
    )


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("", DiffRequest()),
        ("?turn_id=turn_1", DiffRequest(turn_id="turn_1")),
        (
            "?from_event_id=sevt_1&to_position=7",
            DiffRequest(old=ForkPoint(event_id="sevt_1"), new=ForkPoint(position=7)),
        ),
        ("?from_position=0&project_id=proj_1", DiffRequest(old=ForkPoint(position=0), project_id="proj_1")),
    ],
)
async def test_the_query_is_passed_on(http: httpx2.AsyncClient, api: Api, query: str, asked: DiffRequest) -> None:
    assert (await http.get(PATH + query)).status_code == 200
    assert [(session_id, found) for _, session_id, found in api.diffs.requests] == [("sesn_1", asked)]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?turn_id=turn_1&from_position=1", "turn_id"),
        ("?from_position=1&from_event_id=sevt_1", "from_position"),
        ("?to_position=1&to_event_id=sevt_1", "to_position"),
        ("?format=html", "format"),
        ("?state=ignored", "state"),
        ("?state=staged", "state"),
        ("?to_position=-1", "to_position"),
    ],
)
async def test_an_invalid_query_is_refused(http: httpx2.AsyncClient, query: str, field: str) -> None:
    response = await http.get(PATH + query)
    assert response.status_code == 400
    assert field in response.json()["error"]["message"]


@pytest.mark.requirement("C6")
async def test_a_patch_is_streamed(http: httpx2.AsyncClient, api: Api) -> None:
    api.diffs.found, api.diffs.pieces = [make_diff()], [b"diff --git ", b"a/x b/x\n\xff"]
    response = await http.get(PATH, params={"format": "patch"})
    assert response.headers["content-type"].startswith("text/x-patch")
    assert (response.content, api.diffs.open) == (b"diff --git a/x b/x\n\xff", 0)
    await http.get(PATH, params={"format": "patch", "state": "unstaged"})
    assert api.diffs.states == [None, "unstaged"]


async def test_a_patch_of_nothing_is_empty(http: httpx2.AsyncClient, api: Api) -> None:
    api.diffs.found = [make_diff()]
    response = await http.get(PATH, params={"format": "patch"})
    assert (response.status_code, response.content) == (200, b"")


async def test_an_error_before_the_first_chunk_is_an_error_response(http: httpx2.AsyncClient, api: Api) -> None:
    api.diffs.found, api.diffs.failure = [make_diff()], Unavailable("The object store does not answer.")
    response = await http.get(PATH, params={"format": "patch"})
    assert (response.status_code, api.diffs.open) == (503, 0)
    assert "object store" in response.json()["error"]["message"]


async def test_a_patch_of_two_projects_is_refused(http: httpx2.AsyncClient, api: Api) -> None:
    api.diffs.found = [make_diff("proj_1"), make_diff("proj_2")]
    response = await http.get(PATH, params={"format": "patch"})
    assert response.status_code == 400
    assert "proj_1, proj_2" in response.text


@pytest.mark.parametrize("gone_at", ["http.response.start", "http.response.body"])
async def test_a_patch_is_closed_when_its_client_disconnects(api: Api, gone_at: str) -> None:
    """Covers a client that disconnects before the first chunk, when reading has not started."""
    api.diffs.pieces = [b"diff", b"more"]
    response = await stream_resource(api.diffs.stream_patch(make_diff()), media_type=PATCH_MEDIA_TYPE)
    assert api.diffs.open == 1

    async def receive() -> Message:
        raise AssertionError("an ASGI 2.4 server reports a disconnect when the application sends")

    async def send(message: Message) -> None:
        if message["type"] == gone_at:
            raise OSError("The client is gone.")

    with pytest.raises(ClientDisconnect):
        await response({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send)
    assert api.diffs.open == 0


async def test_a_patch_is_closed_when_its_request_is_cancelled(api: Api) -> None:
    api.diffs.pieces = [b"diff"]
    response = await stream_resource(api.diffs.stream_patch(make_diff()), media_type=PATCH_MEDIA_TYPE)

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def send(_: Message) -> None:
        await asyncio.Event().wait()

    await response({"type": "http", "asgi": {"spec_version": "2.3"}}, gone, send)
    assert api.diffs.open == 0
