"""Nothing reveals that another organisation's data exists: no request by id, no list, no response time.

Every route of the OpenAPI document is called with foreign ids, in each combination with the caller's own ids. A route
that is added later is covered automatically, or fails the claim when the claim has no id for one of its parameters.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import httpx2

from bench.prove.figure import Figure, require
from bench.support import nested_references, organisation_isolation, timing_side_channel
from bench.support.cluster import Cluster, open_cluster
from bench.support.openapi import OpenApiDocument, Operation
from bench.support.organisation_isolation import IdRequest, Ids, Organisation, unused_id
from footplate.domain import ids
from footplate.domain.sessions import events
from footplate.testing import hang, replies

_SAMPLES: Final = 400
_SAMPLES_QUICK: Final = 12
_TRANSCRIPT_ROUTES: Final = ("/import", "/transcript")
"""Routes that only sessions of Claude Code have."""
_DELIVERY_ROUTES: Final = ("/merge", "/push", "/bundle")
"""Routes that only sessions with a project have."""
_NEVER_EMPTY_LISTS: Final = ("/v1/members", "/v1/api_keys")
"""They contain the caller itself."""
_MAX_Z: Final = 4.5
"""In standard errors from chance: exceeded once in about 150,000 comparisons of equal distributions."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    samples = _SAMPLES_QUICK if quick else _SAMPLES
    async with open_cluster() as cluster, AsyncExitStack() as exits:
        await cluster.model.install("stuck", replies([hang()]))
        owner, stranger, empty_organisation = [
            await Organisation.create(cluster, name) for name in ("owner", "stranger", "nobody")
        ]
        for organisation in (owner, stranger, empty_organisation):
            exits.push_async_callback(organisation.aclose)
        own = await stranger.create_objects(turns=2)
        targets = await _create_targets(owner)
        document = OpenApiDocument((await empty_organisation.http.get("/openapi.json")).json())
        operations = [operation for operation in document.operations() if operation.needs_key]
        request_count = await _request_all(document, operations, owner, targets, stranger, own)
        await _check_lists(operations, (owner, targets[0]), (stranger, own), empty_organisation)
        await _check_stored_responses_are_separate(owner, stranger)
        guesses = await _measure_times(cluster, document, operations, targets, stranger, own, samples=samples)
        await owner.client.interrupt(targets[-1]["session_id"])
    best = max(guess.best_guess for guess in guesses.values())
    revealing_routes = [name for name, guess in guesses.items() if abs(guess.z) > _MAX_Z]
    by_median = max(abs(guess.seconds) for guess in guesses.values())
    headline = (
        f"{request_count} requests with foreign ids: all 404; response times reveal nothing ({best:.0%} guessed right)"
    )
    if revealing_routes:
        headline = f"response times of {len(revealing_routes)} routes reveal foreign ids ({best:.0%} guessed right)"
    return Figure(
        headline=headline,
        summary=f"{len(operations)} routes, {request_count} requests with foreign ids: all 404, the same "
        f"as for ids that do "
        f"not exist; from the response time, a guess is right at most {best:.0%} of the time ({samples} samples of "
        f"each kind and route; chance is 50%; medians differ by at most {by_median * 1000:.2f} ms)"
        + (f"; response times differ: {', '.join(revealing_routes)}" if revealing_routes else ""),
        holds=not revealing_routes,
        details={name: {"right": round(g.hit_rate, 3), "z": round(g.z, 1)} for name, g in guesses.items()},
    )


async def _create_targets(owner: Organisation) -> Sequence[Ids]:
    """Creates one session in each state that a response could reveal: idle, archived, running a turn."""
    resting, archived, busy = (
        await owner.create_objects(turns=2),
        await owner.create_objects(turns=1),
        await owner.create_objects(turns=1),
    )
    sdk = owner.client.sdk
    await sdk.beta.sessions.archive(archived["session_id"])
    await sdk.beta.agents.archive(archived["agent_id"])
    await sdk.beta.environments.archive(archived["environment_id"])
    for path in ("projects/{project_id}", "workspaces/{workspace_id}"):
        (await owner.http.post(f"/v1/{path.format_map(archived)}/archive")).raise_for_status()
    (await owner.http.post(f"/v1/sessions/{busy['session_id']}/play")).raise_for_status()
    async with owner.client.stream(busy["session_id"]) as stream:
        await owner.client.send_text(busy["session_id"], "[[script:stuck]]")
        await stream.until(events.MODEL_REQUEST_START)
    return [{**target, **await owner.create_group(resting)} for target in (resting, archived, busy)]


async def _request_all(
    document: OpenApiDocument,
    operations: Sequence[Operation],
    owner: Organisation,
    targets: Sequence[Ids],
    stranger: Organisation,
    own: Ids,
) -> int:
    request_count = 0
    before = await organisation_isolation.capture_state(owner, targets)
    for operation in operations:
        for question, chosen in organisation_isolation.build_requests(operation, document, own):
            for target in targets:
                await organisation_isolation.require_same_response(question, chosen, target, stranger)
                request_count += 1
        request_count += await organisation_isolation.compare_filters(operation, targets[0], stranger.http, own)
    for target in targets:
        nothing = {name: unused_id(name) for name in target}
        request_count += await nested_references.compare_references(stranger.http, own, target, nothing)
        request_count += await nested_references.compare_step_results(stranger.http, own, target, nothing)
    require(
        holds=before == await organisation_isolation.capture_state(owner, targets),
        otherwise="a stranger changed something",
    )
    for operation in operations:
        await _check_owner_access(document, operation, owner)
    return request_count


async def _check_owner_access(document: OpenApiDocument, operation: Operation, owner: Organisation) -> None:
    """Checks that the owner's own request for new data succeeds: the refusals above were due to the organisation."""
    harness = "claude" if operation.path.endswith(_TRANSCRIPT_ROUTES) else "native"
    runs_steps = not {"item_id", "comment_id"}.isdisjoint(operation.path_parameters) or operation.path.endswith(
        "/comments"
    )
    turns = 1 if "turn_id" in operation.path_parameters else 0
    own_ids = await owner.create_objects(turns=turns, harness=harness, runs_steps=runs_steps)
    if operation.path.endswith("/import"):
        response = await organisation_isolation.import_transcript(owner, own_ids)
        require(holds=response.status_code == httpx2.codes.OK, otherwise=f"{operation}: {response.text}")
        return
    for question, _ in organisation_isolation.build_requests(operation, document, own_ids):
        reply = await question.send(owner.http)
        # For these the owner gets an error that names the reason: a session without a project has no branch, and a
        # step that is not external takes no result, a pending one cannot be repeated, and the batch's jobs succeed.
        lacks = operation.path.endswith(_DELIVERY_ROUTES) and "has no project" in reply.body
        lacks |= operation.path.endswith("/result") and "is not external" in reply.body
        lacks |= operation.path.endswith("/retry") and (
            "cannot be repeated" in reply.body or "has no job that has failed" in reply.body
        )
        allowed = reply.status == httpx2.codes.OK or lacks
        require(holds=allowed, otherwise=f"{operation} fails for its owner: {reply}")
        return


async def _check_lists(
    operations: Sequence[Operation],
    owners: tuple[Organisation, Ids],
    strangers_own: tuple[Organisation, Ids],
    empty_organisation: Organisation,
) -> None:
    owner, theirs = owners
    stranger, own = strangers_own
    for operation in operations:
        if not operation.is_list or operation.path.endswith("/threads"):  # threads never fill more than a page
            continue
        first = (await owner.http.get(operation.url(theirs), params={"limit": 1})).json()
        require(holds=first["next_page"] is not None, otherwise=f"{operation}: the owner has no second page")
        seen = await _all_ids(owner, operation.url(theirs))
        for query in ({}, {"page": first["next_page"]}, {"limit": 1, "page": first["next_page"]}):
            page = (await stranger.http.get(operation.url(own), params=query)).json()
            leaked = seen & _ids_of(page)
            require(holds=not leaked, otherwise=f"{operation} with {query} shows a stranger {leaked}")
            if not operation.path_parameters and operation.path not in _NEVER_EMPTY_LISTS:
                nothing = (await empty_organisation.http.get(operation.url({}), params=query)).json()
                require(holds=not any(nothing.values()), otherwise=f"{operation} of an empty organisation: {nothing}")


async def _all_ids(organisation: Organisation, path: str) -> set[str]:
    found: set[str] = set()
    query: dict[str, str] = {}
    while True:
        page = (await organisation.http.get(path, params=query)).json()
        found |= _ids_of(page)
        if page["next_page"] is None:
            return found
        query = {"page": page["next_page"]}


def _ids_of(page: Any) -> set[str]:
    return {item["id"] if "id" in item else item["session_id"] for item in page["data"]}  # jobs of a batch have no id


async def _check_stored_responses_are_separate(owner: Organisation, stranger: Organisation) -> None:
    """Checks that stored responses and names of one organisation do not affect another."""
    name = ids.new_id("name")
    body = {"name": name, "config": {"type": "cloud"}}
    for header in ({"idempotency-key": "the same"}, {"x-stainless-retry-count": "1"}):
        path = "/v1/environments"
        responses = [await org.http.post(path, json=body, headers=header) for org in (owner, stranger)]
        statuses = [response.status_code for response in responses]
        require(holds=statuses == [200, 200], otherwise=f"with {header}: {[response.text for response in responses]}")
        first, second = (response.json()["id"] for response in responses)
        require(holds=first != second, otherwise=f"with {header} one organisation got another's response")
        body = {**body, "name": f"{name}-again"}


async def _measure_times(
    cluster: Cluster,
    document: OpenApiDocument,
    operations: Sequence[Operation],
    targets: Sequence[Ids],
    stranger: Organisation,
    own: Ids,
    *,
    samples: int,
) -> dict[str, timing_side_channel.TimingDifference]:
    """Times every route with an id, for foreign ids and for ids that do not exist, in random order."""
    found: dict[str, timing_side_channel.TimingDifference] = {}
    async with httpx2.AsyncClient(
        base_url=cluster.base_urls[0], headers=stranger.http.headers, transport=httpx2.AsyncHTTPTransport()
    ) as http:
        if samples >= _SAMPLES:
            await _check_timing_detects_difference(http, operations, own, samples)
        for operation in operations:
            asked = [*organisation_isolation.build_requests(operation, document, own)]
            if asked:
                question, chosen = asked[-1]  # all names foreign
                foreign = [question.with_ids(_target_ids(chosen, target)) for target in targets]
                nothing = [question.with_ids({name: unused_id(name) for name in chosen}) for _ in targets]
                found[str(operation)] = timing_side_channel.compare_times(
                    *await _sample_times(http, foreign, nothing, samples)
                )
    return found


async def _check_timing_detects_difference(
    http: httpx2.AsyncClient, operations: Sequence[Operation], own: Ids, samples: int
) -> None:
    """Checks that the timing distinguishes an existing session from a missing one; otherwise it would prove nothing."""
    (operation,) = [item for item in operations if str(item) == "GET /v1/sessions/{session_id}/events"]
    mine = IdRequest(operation, {"session_id": own["session_id"]})
    nothing = mine.with_ids({"session_id": unused_id("session_id")})
    seen = timing_side_channel.compare_times(
        *await _sample_times(http, [mine], [nothing], samples, expected_statuses=frozenset({200, 404}))
    )
    require(holds=seen.z > _MAX_Z, otherwise=f"the timing misses a difference that exists: {seen}")


def _target_ids(chosen: Sequence[str], target: Ids) -> Ids:
    return {name: target[organisation_isolation.BODY_IDS.get(name, name)] for name in chosen}


async def _sample_times(
    http: httpx2.AsyncClient,
    foreign: Sequence[IdRequest],
    nothing: Sequence[IdRequest],
    count: int,
    *,
    expected_statuses: frozenset[int] = frozenset({404}),
) -> tuple[list[float], list[float]]:
    times: tuple[list[float], list[float]] = ([], [])
    chance = random.Random(9)
    for number in range(count):
        pair = [(foreign, times[0]), (nothing, times[1])]
        chance.shuffle(pair)
        for questions, into in pair:
            method, url, body = questions[number % len(questions)].request()
            started = time.perf_counter()
            response = await http.request(method, url, json=body)
            into.append(time.perf_counter() - started)
            require(holds=response.status_code in expected_statuses, otherwise=f"{method} {url}: {response.text}")
        await asyncio.sleep(0)
    return times
