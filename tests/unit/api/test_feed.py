"""`/v1/events/stream`: parameters, limits and permissions. The viewer of an open feed is updated with its key."""

import asyncio
from dataclasses import replace

import httpx2
import pytest

from footplate.api.streams import key_revocation
from footplate.domain.network.request_limits import RequestLimits
from footplate.domain.organisations.visibility import SessionAudience, ViewFilter
from footplate.stack.orphan_processes import wait_until

from .conftest import Api, make_client
from .fake_services import KEYS

PATH = "/v1/events/stream"


async def test_parameters_reach_the_feed(api: Api, http: httpx2.AsyncClient) -> None:
    first = await http.get(PATH)
    assert first.status_code == 200
    assert first.text == 'event: ping\nid: 7\ndata: {"type":"ping"}\n\n'
    query = {"types[]": ["session.error", "step.failed"], "session_id": "sesn_1", "project_id": "proj_1", "after": "3"}
    await http.get(PATH, params=query, headers={"last-event-id": "5"})
    viewer, after = api.feeds.viewers[1]
    assert (viewer.organisation, viewer.types, viewer.session_id, viewer.project_id, after) == (
        KEYS["secret-a"].organisation,
        frozenset({"session.error", "step.failed"}),
        "sesn_1",
        "proj_1",
        5,
    )


@pytest.mark.parametrize("query", ["types[]=agent.message", "after=x", "after=4.sevt_1.2", "unknown=1"])
async def test_a_parameter_that_the_feed_cannot_use_is_refused(http: httpx2.AsyncClient, query: str) -> None:
    assert (await http.get(f"{PATH}?{query}")).status_code == 400


@pytest.mark.timing
async def test_open_feeds_count_as_streams_and_follow_the_rights_of_their_key(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_revocation, "CHECK_SECONDS", 0.01)
    api.feeds.forever = True
    async with make_client(api.build(limits=RequestLimits(streams_per_key=1))) as http:
        streaming = asyncio.create_task(http.get(PATH))
        assert await wait_until(lambda: _is(len(api.feeds.viewers) == 1), 20)
        assert (await http.get(PATH)).status_code == 429
        viewer, _ = api.feeds.viewers[0]
        current = replace(KEYS["secret-a"], roles=frozenset({"viewer"}), team_ids=frozenset({"team_1"}))
        monkeypatch.setitem(KEYS, "secret-a", current)
        of_team = SessionAudience("memb_1", "team_1", frozenset())
        async with asyncio.timeout(20):
            assert await wait_until(lambda: _is(viewer.view == ViewFilter.of(current)), 20)
            assert viewer.view.includes(of_team)
            monkeypatch.setitem(KEYS, "secret-a", replace(current, roles=frozenset()))
            response = await streaming
    assert "event: error" in response.text


async def _is(condition: bool) -> bool:  # noqa: FBT001 - the result of a comparison
    return condition


@pytest.mark.parametrize(
    ("teams", "projects", "audience", "visible"),
    [
        ((), None, SessionAudience("memb_1", "organisation", frozenset()), True),
        ((), None, SessionAudience("memb_1", "owner", frozenset()), False),
        ((), None, SessionAudience("key_me", "owner", frozenset()), True),
        ((), None, SessionAudience("memb_1", "team_1", frozenset()), False),
        (("team_1",), None, SessionAudience("memb_1", "team_1", frozenset()), True),
        ((), ("proj_1",), SessionAudience("memb_1", "organisation", frozenset()), False),
        ((), ("proj_1",), SessionAudience("memb_1", "organisation", frozenset({"proj_1"})), True),
        ((), ("proj_1",), SessionAudience("memb_1", "organisation", frozenset({"proj_1", "proj_2"})), False),
        ((), ("proj_1",), SessionAudience("memb_1", "owner", frozenset({"proj_1"})), False),
    ],
)
def test_who_can_see_a_session(
    teams: tuple[str, ...], projects: tuple[str, ...] | None, audience: SessionAudience, *, visible: bool
) -> None:
    scope = None if projects is None else frozenset(projects)
    base = replace(KEYS["secret-a"], id="key_me", team_ids=frozenset(teams), project_ids=scope)
    assert ViewFilter.of(replace(base, roles=frozenset({"member"}))).includes(audience) is visible
    assert ViewFilter.of(replace(base, roles=frozenset({"admin"}), project_ids=None)).includes(audience)
