"""Starts a cluster with realistic content for the dashboard, and prints its address and an API key:
`python -m bench.support.dashboard_content`. It runs until Ctrl-C, and then deletes everything.

The sessions are real: the scripted model calls tools in sandboxes, in projects of the organisation. There are sessions
in every state, approvals, questions, failures, a queue, a subagent, forks, schedules, webhooks and people.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.dashboard import history, organisation, repositories, sessions, work
from bench.support.dashboard.organisation import Organisation
from bench.support.dashboard.sessions import ContentSession
from bench.support.webhooks.receiver import WebhookReceiver
from footplate.stack.orphan_processes import wait_until
from footplate.testing.model_scripts import replies, reply
from footplate.testing.reply_steps import text

_SETTLED_WITHIN: Final = 120.0
_AT_ONCE: Final = 5
"""Sessions that are created at the same time: on a busy machine, more would lose their workers."""
_AFTER_RUNS: Final = 10.0
"""Seconds for the forks and the runs of schedules."""
_SETTINGS: Final = {"FOOTPLATE_WEBHOOK_HTTP": "true", "FOOTPLATE_WEBHOOK_ALLOW": "127.0.0.1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardContent:
    """Ids by title or name."""

    sessions: dict[str, str]
    schedules: dict[str, str]
    organisation: Organisation
    webhook: str
    device_code: str
    """What a program shows that waits to be signed in."""


@asynccontextmanager
async def open_content_cluster() -> AsyncIterator[Cluster]:
    """Starts a cluster whose key is that of an administrator. Its content is not created yet."""
    async with open_cluster(environment=_SETTINGS) as cluster:
        first_key = await cluster.create_key(organisation.NAME, name="installation")
        async with Client(cluster, key=first_key) as client:
            cluster.key = await organisation.create_administrator(client)
        yield cluster


async def create_content(cluster: Cluster, *, report: bool = False) -> DashboardContent:
    """Creates everything, and waits until each session has its state."""
    await cluster.model.install("default", replies(reply(text("Everything is up to date."), repeat=True)))
    await cluster.model.install(sessions.HELPER, sessions.HELPER_REPLIES)
    repositories.create_repositories(cluster.directory / "data" / "projects" / organisation.NAME)
    async with AsyncExitStack() as closing:
        client = await closing.enter_async_context(Client(cluster))
        receiver = await closing.enter_async_context(WebhookReceiver())
        created = await organisation.create_organisation(client)
        webhook = await work.create_webhooks(client, receiver.url("/hooks/footplate"))
        clients = {
            name: await closing.enter_async_context(Client(cluster, key=key)) for name, key in created.keys.items()
        }
        wanted = sessions.build_sessions()
        few = asyncio.Semaphore(_AT_ONCE)

        async def create(one: ContentSession) -> tuple[str, str]:
            async with few:
                return await _create_session(cluster, clients.get(one.owner or "", client), one, created)

        found = await asyncio.gather(*map(create, wanted), return_exceptions=True)
        ids: dict[str, str] = {}
        for one, result in zip(wanted, found, strict=True):
            if isinstance(result, BaseException):
                print(f"not created: {one.title}: {result}", file=sys.stderr)
                continue
            ids[one.title], state = result
            if report:
                print(f"{state:<22} {ids[one.title]}  {one.title[:60]}")
            if state not in one.expected:
                print(f"unexpected state {state}: {one.title}", file=sys.stderr)
        await work.create_forks(cluster, client, ids[sessions.MEDIAN])
        ids[work.PIPELINE] = await work.create_pipeline(client, created)
        schedules = await work.create_schedules(client, created)
        await _wait_for_state(client, ids[work.PIPELINE], frozenset({"waiting_for_result"}))
        await asyncio.sleep(_AFTER_RUNS)
        await work.add_notes(client, created, ids)
        await organisation.finish_organisation(client, created)
        await work.finish_webhooks(client, webhook)
        minutes = {ids[one.title]: one.minutes for one in wanted if one.title in ids}
        await history.write_history(cluster, minutes, waits_for_a_backend=ids[sessions.BACKEND])
        device = await organisation.post(client, "/v1/device_authorizations", {"client_name": "footplate on build-03"})
    return DashboardContent(
        sessions=ids,
        schedules=schedules,
        organisation=created,
        webhook=webhook,
        device_code=device["user_code"],
    )


async def _create_session(
    cluster: Cluster, client: Client, session: ContentSession, created: Organisation
) -> tuple[str, str]:
    extra: dict[str, Any] = {} if session.project is None else {"project_ids": [created.projects[session.project]]}
    session_id = await client.session(
        created.agents[session.agent], created.environments["default"], title=session.title, extra_body=extra
    )
    script = f"script-of-{session_id}" if session.marked else session_id
    await cluster.model.install(script, session.script)
    if session.prompt is not None:
        marker = f" [[script:{script}]]" if session.marked else ""
        await client.send_text(session_id, f"{session.prompt}{marker}")
    if session.is_paused:
        await client.sdk.post(f"/v1/sessions/{session_id}/pause", body={}, cast_to=dict[str, Any])
    for prompt in session.further_prompts:
        await client.send_text(session_id, prompt)
    return session_id, await _wait_for_state(client, session_id, session.expected)


async def _wait_for_state(client: Client, session_id: str, expected: frozenset[str]) -> str:
    state = ""

    async def has_expected_state() -> bool:
        nonlocal state
        body: Any = await client.sdk.get(f"/v1/sessions/{session_id}", cast_to=dict[str, Any])
        state = body["activity"]["state"]
        return state in expected

    await wait_until(has_expected_state, _SETTLED_WITHIN)
    return state


async def _serve() -> None:
    async with open_content_cluster() as cluster:
        print(f"FOOTPLATE_BASE_URL={cluster.base_urls[0]}\nFOOTPLATE_API_KEY={cluster.key}", flush=True)
        await create_content(cluster, report=True)
        print("The content is complete. Ctrl-C stops everything.", flush=True)
        await asyncio.Event().wait()


async def _serve_until_signal() -> None:
    serving = asyncio.create_task(_serve())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, serving.cancel)
    with suppress(asyncio.CancelledError):
        await serving


if __name__ == "__main__":
    asyncio.run(_serve_until_signal())
