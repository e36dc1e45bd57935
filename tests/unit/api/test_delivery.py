"""`merge`, `push` and `bundle` of a session: the request, and the explanation of a refusal."""

from datetime import UTC, datetime

import httpx2
import pytest
from inline_snapshot import snapshot

from footplate.domain.files.delivery import (
    BranchCheckedOut,
    BranchTarget,
    DeliveryRequest,
    DeliveryResult,
    FileConflict,
    MergeConflict,
)
from footplate.domain.projects.write_leases import LeaseHeld, LeaseLost

from .conftest import Api

PATH = "/v1/sessions/sesn_1"


async def test_a_merge_returns_the_commit_of_the_branch(http: httpx2.AsyncClient, api: Api) -> None:
    response = await http.post(f"{PATH}/merge", json={})
    assert response.json() == snapshot(
        {
            "type": "session_left",
            "session_id": "sesn_1",
            "project_id": "proj_1",
            "status": "merged",
            "branch": "main",
            "commit": "cccccccccccccccccccccccccccccccccccccccc",
            "before": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        }
    )
    assert api.delivery.requests == [("sesn_1", DeliveryRequest())]
    assert api.delivery.branches == [BranchTarget(wait=300)]


async def test_the_request_is_passed_on(http: httpx2.AsyncClient, api: Api) -> None:
    api.delivery.result = DeliveryResult(status="pushed", branch="x", commit="c" * 40, before=None)
    body = {"project_id": "proj_1", "into": "next", "message": "Mine", "wait_seconds": 5}
    assert (await http.post(f"{PATH}/merge", json=body)).status_code == 200
    body = {"branch": "topic/x", "wait_seconds": 0}
    assert (await http.post(f"{PATH}/push", json=body)).json()["before"] is None
    assert [asked for _, asked in api.delivery.requests] == [
        DeliveryRequest(project_id="proj_1", message="Mine"),
        DeliveryRequest(),
    ]
    assert api.delivery.branches == [BranchTarget(branch="next", wait=5), BranchTarget(branch="topic/x", wait=0)]


@pytest.mark.parametrize(
    ("route", "body", "field"),
    [
        ("merge", {"into": "-x"}, "into"),
        ("push", {"branch": "a..b"}, "branch"),
        ("push", {"branch": "refs heads"}, "branch"),
        ("merge", {"wait_seconds": 301}, "wait_seconds"),
        ("merge", {"message": ""}, "message"),
        ("merge", {"branch": "x"}, "branch"),
    ],
)
async def test_an_invalid_field_is_refused_by_name(
    http: httpx2.AsyncClient, api: Api, route: str, body: dict[str, object], field: str
) -> None:
    response = await http.post(f"{PATH}/{route}", json=body)
    assert (response.status_code, response.json()["error"]["field"]) == (400, field)
    assert api.delivery.branches == []


async def test_a_conflict_is_explained(http: httpx2.AsyncClient, api: Api) -> None:
    conflicts = [
        FileConflict(
            path="a.py",
            reason="the same lines were changed on both sides",
            line_numbers=[3, 9],
            last_commit="abc1234 Fix (Ann)",
        ),
        FileConflict(path="b", reason="changed on one side and deleted on the other"),
    ]
    api.delivery.failure = MergeConflict("main", conflicts)
    response = await http.post(f"{PATH}/merge", json={})
    error = response.json()["error"]
    assert (response.status_code, error["type"], response.headers["x-should-retry"]) == (409, "conflict_error", "false")
    assert error["message"] == snapshot(
        """\
The session's work conflicts with the branch 'main' in 2 files:
  a.py: the same lines were changed on both sides (line 3, 9); last in abc1234 Fix (Ann)
  b: changed on one side and deleted on the other\
"""
    )
    assert error["conflicts"][0] == {
        "path": "a.py",
        "reason": "the same lines were changed on both sides",
        "lines": [3, 9],
        "last_commit": "abc1234 Fix (Ann)",
    }
    assert error["docs"].endswith("#merge_conflict")


async def test_a_long_list_of_conflicts_is_shortened() -> None:
    error = MergeConflict("main", [FileConflict(path=f"{number}", reason="x") for number in range(30)])
    assert error.message.endswith("and 10 more")
    assert len(error.message.splitlines()) == 22


@pytest.mark.requirement("C2")
async def test_the_holder_of_a_branch_is_named(http: httpx2.AsyncClient, api: Api) -> None:
    since = datetime(2026, 11, 15, 20, 0, tzinfo=UTC)
    api.delivery.failure = LeaseHeld("the branch 'main'", holder="session x", since=since, waited=300, queue_length=2)
    response = await http.post(f"{PATH}/merge", json={})
    assert response.status_code == 409
    assert "session x, since 2026-11-15 20:00:00 UTC. The request waited 300 s" in response.json()["error"]["message"]
    api.delivery.failure = BranchCheckedOut("main", "app")
    assert "footplate apply" in (await http.post(f"{PATH}/merge", json={})).json()["error"]["help"]
    api.delivery.failure = LeaseLost("the branch")
    response = await http.post(f"{PATH}/merge", json={})
    assert (response.status_code, response.headers["x-should-retry"]) == (503, "true")


async def test_a_bundle_is_streamed(http: httpx2.AsyncClient, api: Api) -> None:
    api.delivery.pieces = [b"# v2 git bundle\n", b"\xff"]
    response = await http.get(f"{PATH}/bundle", params={"project_id": "proj_1"})
    assert (response.content, response.headers["content-type"]) == (
        b"# v2 git bundle\n\xff",
        "application/x-git-bundle",
    )
    assert api.delivery.requests == [("sesn_1", DeliveryRequest(project_id="proj_1", writes=False))]
    api.delivery.failure = BranchCheckedOut("x", "y")
    assert (await http.get(f"{PATH}/bundle")).status_code == 409
    assert api.delivery.open == 0
