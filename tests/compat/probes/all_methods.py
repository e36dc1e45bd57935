"""Behaviour of all methods: headers, keys, errors and retries."""

import inspect
import secrets
from typing import Any

import anthropic
from anthropic import types as sdk_types
from bench.prove.figure import NotHeld
from bench.support.sdk.sdk_client import MODEL, SdkClient, message
from tests.compat.checks import require_equal
from tests.compat.registry import different, probe, supported

_TRIES = 20
_LATE = 2.0
_KINDS = set(sdk_types.shared.ErrorType.__args__)  # pyrefly: ignore[missing-attribute]


@supported("every method", "betas", note="Accepted without effect: nothing here is a beta.")
@different("every method", "workspace_id", note="Accepted without effect: a key belongs to one organisation.")
@supported("every method", "extra_headers", "extra_query", "timeout", note="Handled by the SDK.")
@supported("every method", "extra_body", note="Carries fields that only Footplate has.")
async def extra_headers_queries_and_bodies_are_accepted(door: SdkClient) -> None:
    agent = await door.agent(
        betas=["managed-agents-2026-04-01", "files-api-2025-04-14"],
        workspace_id="wrkspc_1",
        extra_headers={"anthropic-version": "2099-01-01", "x-of-mine": "1"},
        extra_query={"beta": "true"},
        extra_body={"role": "a tester"},
        timeout=30,
    )
    require_equal(agent.to_dict()["role"], "a tester")
    found = await door.call("agents.retrieve", agent.id, betas=["x"], workspace_id="wrkspc_2")
    require_equal(found.id, agent.id)
    unknown: Any = {"extra_query": {"colour": "red"}}
    await door.expect_error(anthropic.BadRequestError, "agents.list", field="colour", **unknown)


@probe
async def keys_are_accepted_in_either_header(door: SdkClient) -> None:
    async with SdkClient(door.cluster, door.kind, tally=door.tally, key="fp_wrong") as stranger:
        refusal = await stranger.expect_error(anthropic.AuthenticationError, "agents.list")
        require_equal((refusal.type, refusal.response.headers["www-authenticate"]), ("authentication_error", "Bearer"))
    older = {"authorization": "", "x-api-key": door.cluster.key}
    require_equal((await door.call("agents.list", limit=1, extra_headers=older)).data[:0], [])
    other = await door.cluster.create_key(f"org-{secrets.token_hex(4)}")
    session = await door.session()
    async with SdkClient(door.cluster, door.kind, tally=door.tally, key=other) as foreigner:
        await foreigner.expect_error(anthropic.NotFoundError, "sessions.retrieve", session.id)
        await foreigner.expect_error(anthropic.NotFoundError, "sessions.delete", session.id)
        await foreigner.expect_error(anthropic.NotFoundError, "agents.retrieve", session.agent.id)
        require_equal(await foreigner.list_all("sessions.list"), [])


@probe
async def errors_are_those_of_the_sdk(door: SdkClient) -> None:
    missing = await door.expect_error(anthropic.NotFoundError, "agents.retrieve", "agent_none")
    body: Any = missing.body
    require_equal((body["type"], missing.type in _KINDS, body["request_id"]), ("error", True, missing.request_id))
    require_equal(missing.response.headers["x-should-retry"], "false")
    for key in ("message", "title", "help", "docs"):
        require_equal(bool(body["error"][key]), True)
    large: Any = {"name": "A", "model": MODEL, "metadata": {}, "extra_body": {"system": "s" * (33 * 1024 * 1024)}}
    await door.expect_error(anthropic.ContentTooLargeError, "agents.create", **large)
    strange: Any = {"extra_headers": {"content-encoding": "gzip"}}
    await door.expect_error(anthropic.BadRequestError, "agents.create", name="A", model=MODEL, **strange)


@probe
async def a_retry_takes_effect_once(door: SdkClient) -> None:
    """Covers retries by key, and the SDK's own retries after the first response was lost."""
    headers = {"extra_headers": {"Idempotency-Key": secrets.token_hex(8)}}
    session = await door.session()
    first = await door.call("sessions.events.send", session.id, events=[message("[[script:probe-hello]]")], **headers)
    again = await door.call("sessions.events.send", session.id, events=[message("[[script:probe-hello]]")], **headers)
    require_equal(again.data[0].id, first.data[0].id)
    other = {"events": [message("other")], **headers}
    refusal = anthropic.BadRequestError
    await door.expect_error(refusal, "sessions.events.send", session.id, field="Idempotency-Key", **other)
    async with SdkClient(door.cluster, door.kind, tally=door.tally, max_retries=5) as patient:
        sent = await call_until_response_lost(
            patient, "sessions.events.send", session.id, events=[message("[[script:probe-hello]]")]
        )
        listed = await patient.list_all("sessions.events.list", session.id, types=["user.message"])
        wanted = [first.data[0].id, *(response.data[0].id for response in sent)]
        require_equal([event.id for event in listed], wanted)
        name = f"lost-{secrets.token_hex(4)}"
        (agent, *others) = await call_until_response_lost(patient, "agents.create", name=name, model=MODEL)
        since = await door.list_all("agents.list", created_at_gte=agent.created_at)
        require_equal(sum(row.name == name for row in since), 1 + len(others))


async def call_until_response_lost(door: SdkClient, method: str, *args: Any, **kwargs: Any) -> list[Any]:
    """Calls until the SDK had to retry because a response was late, and returns all responses."""
    resource, name = method.rsplit(".", 1)
    responses = []
    for _ in range(_TRIES):
        # The api does the work and responds too late. The failpoint may delay another client's request instead.
        (door.cluster.failpoints / "before_answer").write_text(str(_LATE))
        raw = await door.call(f"{resource}.with_raw_response.{name}", *args, timeout=_LATE / 2, **kwargs)
        parsed = raw.parse()
        responses.append(await parsed if inspect.isawaitable(parsed) else parsed)
        if raw.retries_taken:
            return responses
    raise NotHeld(f"no response to {method} was late in {_TRIES} tries")
