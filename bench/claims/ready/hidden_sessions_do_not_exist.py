"""A session that a member may not see looks like one that does not exist: by id, in lists, audit, usage and streams.

A member creates sessions that are private, visible to a team, and visible to the organisation, each with turns, files,
threads and a pending approval. Members of every kind request every route of the OpenAPI document with the ids that are
hidden from them. Each response must equal, byte for byte, the response for an id that does not exist. Members who may
see a session read it with the same requests.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from bench.prove.figure import Figure, require
from bench.support.clients import raw_client
from bench.support.cluster import Cluster, open_cluster
from bench.support.openapi import OpenApiDocument, Operation
from bench.support.organisation_isolation import (
    BODY_IDS,
    IdRequest,
    Ids,
    Organisation,
    build_requests,
    compare_filters,
    unused_id,
)

_SESSION_IDS: Final = frozenset(
    {
        "session_id",
        "turn_id",
        "step_id",
        "thread_id",
        "resource_id",
        "approval_id",
        "question_id",
        "file_id",
        "batch_id",
        "deployment_id",
        "deployment_run_id",
        "trigger_id",
    }
)
"""The ids that are hidden together with a session."""
_END_SECONDS: Final = 5.0
_HANDSHAKE: Final = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


@dataclass(frozen=True, slots=True)
class _Viewer:
    name: str
    http: httpx2.AsyncClient
    sees: frozenset[str]
    """The visibilities of the owner's sessions that it may see."""


@dataclass(slots=True)
class _Counts:
    hidden: int = 0
    visible: int = 0
    lists: int = 0
    faults: list[str] = field(default_factory=list)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    counts = _Counts()
    async with open_cluster(apis=2) as cluster, AsyncExitStack() as exits:
        admin = await exits.enter_async_context(raw_client(cluster))
        team, viewers, owner_key = await _create_viewers(cluster, admin, exits)
        owner = await Organisation.open(cluster, owner_key)
        exits.push_async_callback(owner.aclose)
        audiences = {
            "private": {"visibility": "private"},
            "team": {"visibility": "team", "team_id": team},
            "organisation": {"visibility": "organisation"},
        }
        targets = {name: await owner.create_objects(turns=2, audience=each) for name, each in audiences.items()}
        for name, each in audiences.items():
            targets[name] |= await owner.create_group(targets[name], each)
        document = OpenApiDocument((await admin.get("/openapi.json")).json())
        operations = [operation for operation in document.operations() if operation.needs_key]
        for viewer in viewers if not quick else viewers[:3]:
            await _check_viewer(viewer, document, operations, targets, counts)
            print(f"  {viewer.name}: {counts.hidden} requests with hidden ids so far", flush=True)
        seconds = await _measure_loss_of_access(owner, viewers[0], targets["organisation"]["session_id"])
    headline = f"{counts.hidden} requests with hidden ids: none differs from an id that does not exist"
    if counts.faults:
        headline = f"{len(counts.faults)} of {counts.hidden} requests reveal a hidden session"
    return Figure(
        headline=headline,
        summary=f"{counts.hidden} requests with ids of private and team sessions and their turns, threads, resources, "
        f"approvals and files, by {len(viewers)} kinds of members: all as for ids that do not exist; {counts.lists} "
        f"lists, audit pages and usage reports contain none of them; {counts.visible} requests by those who may see "
        f"them succeed; an open stream ends {seconds:.1f} s after a session became private"
        + (f"; faults: {'; '.join(counts.faults[:3])}" if counts.faults else ""),
        holds=not counts.faults and seconds <= _END_SECONDS,
        details={"faults": [*counts.faults], "seconds": round(seconds, 2)},
    )


async def _create_viewers(
    cluster: Cluster, admin: httpx2.AsyncClient, exits: AsyncExitStack
) -> tuple[str, Sequence[_Viewer], str]:
    """Creates the owner and every kind of viewer. Returns the owner's team, the viewers and the owner's key."""
    team, other_team = [await _post(admin, "/v1/teams", {"name": name}) for name in ("platform", "mobile")]
    project = await _post(admin, "/v1/projects", {"url": "https://git.example.com/other"})

    async def create_key(name: str, roles: Sequence[str], *teams: Mapping[str, Any], **fields: Any) -> str:
        kind = "service" if name == "service" else "person"
        member = await _post(admin, "/v1/members", {"name": name, "roles": roles, "kind": kind})
        for each in teams:
            await _post(admin, f"/v1/teams/{each['id']}", {"add_member_ids": [member["id"]]})
        body = {"name": name, "member_id": member["id"], "roles": roles, **fields}
        return str((await _post(admin, "/v1/api_keys", body))["secret"])

    owner_key = await create_key("owner", ["member"], team)
    everything = frozenset({"private", "team", "organisation"})
    in_team, in_organisation = frozenset({"team", "organisation"}), frozenset({"organisation"})
    keys = {
        "teammate": (await create_key("teammate", ["member"], team), in_team),
        "other team": (await create_key("other team", ["member"], other_team), in_organisation),
        "restricted key of an administrator": (
            await create_key("restricted", ["admin"], project_ids=[project["id"]]),
            frozenset[str](),
        ),
        "viewer": (await create_key("viewer", ["viewer"]), in_organisation),
        "operator": (await create_key("operator", ["operator"]), in_organisation),
        "approver": (await create_key("approver", ["approver"]), in_organisation),
        "policy admin": (await create_key("policy admin", ["policy_admin"]), in_organisation),
        "service account": (await create_key("service", ["member"]), in_organisation),
        "administrator": (await create_key("administrator", ["admin"]), everything),
        "other organisation": (await cluster.create_key("strangers"), frozenset[str]()),
    }
    clients = {
        name: await exits.enter_async_context(raw_client(cluster, key=key, api=number % 2))
        for number, (name, (key, _)) in enumerate(keys.items())
    }
    return str(team["id"]), [_Viewer(name, clients[name], sees) for name, (_, sees) in keys.items()], owner_key


async def _post(http: httpx2.AsyncClient, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    response = await http.post(path, json=body)
    require(holds=response.status_code == httpx2.codes.OK, otherwise=f"POST {path}: {response.text}")
    found: dict[str, Any] = response.json()
    return found


async def _check_viewer(
    viewer: _Viewer,
    document: OpenApiDocument,
    operations: Sequence[Operation],
    targets: Mapping[str, Ids],
    counts: _Counts,
) -> None:
    own = targets["organisation"]
    for visibility, target in targets.items():
        if visibility in viewer.sees:
            await _check_access(viewer, operations, target, counts)
            continue
        for operation in operations:
            for request, chosen in _requests_with_hidden_ids(operation, document, own):
                hidden = request.with_ids({name: target[BODY_IDS.get(name, name)] for name in chosen})
                unused = request.with_ids({name: unused_id(name) for name in chosen})
                found, expected = await hidden.send(viewer.http), await unused.send(viewer.http)
                counts.hidden += 1
                if found != expected or found.status not in {403, 404}:
                    counts.faults.append(f"{viewer.name}, {visibility}: {operation}: {found} instead of {expected}")
            if operation.is_list and "session_id" not in operation.path_parameters:
                # Everyone may see who is a member, and some sessions of the owner.
                visible = frozenset({"owner_id"})
                counts.hidden += await compare_filters(operation, target, viewer.http, own, visible=visible)
        for headers in ({}, _HANDSHAKE):
            texts = [
                await _open_socket(viewer, each, headers) for each in (target["session_id"], unused_id("session_id"))
            ]
            counts.hidden += 1
            if texts[0] != texts[1]:
                counts.faults.append(f"{viewer.name}, {visibility}: WebSocket: {texts[0]} instead of {texts[1]}")
    await _check_lists(viewer, operations, targets, counts)


def _requests_with_hidden_ids(
    operation: Operation, document: OpenApiDocument, own: Ids
) -> Iterator[tuple[IdRequest, Sequence[str]]]:
    known = {**{name: unused_id(name) for name in ("member_id", "team_id", "key_id")}, **own}
    for request, chosen in build_requests(operation, document, known):
        if all(BODY_IDS.get(name, name) in _SESSION_IDS for name in chosen):
            yield request, chosen


async def _open_socket(viewer: _Viewer, session_id: str, headers: Mapping[str, str]) -> str:
    response = await viewer.http.get(f"/v1/sessions/{session_id}/ws", headers=headers)
    text = response.text.replace(session_id, "ID").replace(response.headers["request-id"], "REQUEST")
    return f"{response.status_code} {text}"


async def _check_access(viewer: _Viewer, operations: Sequence[Operation], target: Ids, counts: _Counts) -> None:
    """Checks that who may see a session reads it: the refusals are due to the visibility."""
    for operation in operations:
        names = set(operation.path_parameters)
        if (
            operation.method != "GET"
            or not names
            or not names <= _SESSION_IDS
            or operation.path.endswith("/transcript")
        ):
            continue
        response = await IdRequest(operation, {name: target[name] for name in names}).send(viewer.http)
        counts.visible += 1
        lacks_project = "has no project" in response.body
        if response.status != httpx2.codes.OK and not lacks_project:
            counts.faults.append(f"{viewer.name} may see it, but {operation}: {response}")


async def _check_lists(
    viewer: _Viewer, operations: Sequence[Operation], targets: Mapping[str, Ids], counts: _Counts
) -> None:
    hidden = {
        item_id
        for visibility, target in targets.items()
        if visibility not in viewer.sees
        for name, item_id in target.items()
        if name in _SESSION_IDS
    }
    urls = [
        operation.path
        for operation in operations
        if operation.method == "GET"
        and not operation.path_parameters
        and not operation.path.endswith(("/verify", "/stream"))  # steps-3 reads the feed
    ]
    for url in [*urls, "/v1/usage?group_by[]=session"]:
        page: str | None = None
        while True:
            response = await viewer.http.get(url, params={"page": page} if page else {})
            counts.lists += 1
            leaked = [item_id for item_id in hidden if item_id in _drop_refusals(url, response)]
            if leaked:
                counts.faults.append(f"{viewer.name}: {url} contains {leaked}")
            page = response.json().get("next_page") if response.status_code == httpx2.codes.OK else None
            if page is None:
                break
    await _check_totals(viewer, counts)


def _drop_refusals(url: str, response: httpx2.Response) -> str:
    """Returns the text without entries about refused requests: they quote the ids that the refused member sent."""
    if url != "/v1/audit":
        return response.text
    return str([entry for entry in response.json().get("data", []) if entry["kind"] != "refusal"])


async def _check_totals(viewer: _Viewer, counts: _Counts) -> None:
    """Checks that the total of a usage report is the sum of the sessions that the viewer can see."""
    total, by_session = [
        sum(line["turns"] for line in (await viewer.http.get("/v1/usage", params=query)).json()["data"])
        for query in ({}, {"group_by[]": "session"})
    ]
    counts.lists += 2
    if total != by_session:
        counts.faults.append(f"{viewer.name}: the usage total has {total} turns, its sessions {by_session}")


async def _measure_loss_of_access(owner: Organisation, viewer: _Viewer, session_id: str) -> float:
    """Makes a session private while a viewer streams it. Returns the seconds until the stream has ended."""
    async with viewer.http.stream("GET", f"/v1/sessions/{session_id}/events/stream") as stream:
        require(holds=stream.status_code == httpx2.codes.OK, otherwise=f"the stream did not open: {stream.status_code}")
        (await owner.http.post(f"/v1/sessions/{session_id}", json={"visibility": "private"})).raise_for_status()
        changed = time.monotonic()
        refused = await viewer.http.get(f"/v1/sessions/{session_id}")
        require(holds=refused.status_code == httpx2.codes.NOT_FOUND, otherwise=f"still visible: {refused.text}")
        async with asyncio.timeout(60):
            async for _ in stream.aiter_bytes():
                pass
    return time.monotonic() - changed
