"""Turns are listed in pages, newest first, and retrieved by id."""

from datetime import timedelta

import httpx2
import pytest
from anthropic import AsyncAnthropic

from footplate.api.wire.response_models import Listing
from footplate.api.wire.response_models import Turn as TurnResponse
from footplate.domain import ids
from footplate.domain.sessions.events import Usage
from footplate.domain.sessions.turns import Turn, TurnStatus

from .conftest import Api
from .fake_services import START


@pytest.mark.requirement("C4")
async def test_turns_are_listed_and_retrieved(http: httpx2.AsyncClient, sdk: AsyncAnthropic, api: Api) -> None:
    agent = await sdk.beta.agents.create(name="A", model="m")
    environment = await sdk.beta.environments.create(name="E")
    session = await sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id)
    made = [
        Turn(
            id=f"{ids.TURN}_{number}",
            session_id=session.id,
            status=TurnStatus.COMPLETED,
            attempt=1,
            input_event_id=f"sevt_{number}",
            first_seq=number,
            config={"model": "m"},
            usage=Usage(output_tokens=3),
            result={"text": "done", "commit": "c1", "commits": {"proj_1": "c1", "proj_2": "c2"}} if number else {},
            created_at=START + timedelta(seconds=number),
            started_at=START,
            ended_at=None,
        )
        for number in range(5)
    ]
    api.world.turns[session.id] = made
    path = f"/v1/sessions/{session.id}/turns"
    seen: list[str] = []
    page: str | None = None
    while True:
        response = await http.get(path, params={"limit": "2"} | ({"page": page} if page else {}))
        Listing[TurnResponse].model_validate(response.json())
        seen.extend(turn["id"] for turn in response.json()["data"])
        page = response.json()["next_page"]
        if page is None:
            break
    assert seen == [turn.id for turn in reversed(made)]
    one = (await http.get(f"{path}/{made[1].id}")).json()
    assert one["usage"]["output_tokens"] == 3
    assert "cost_microusd" not in one["usage"]
    assert (one["commit"], one["commits"]) == ("c1", {"proj_1": "c1", "proj_2": "c2"})
    assert "commit" not in one["result"]
    earlier = (await http.get(f"{path}/{made[0].id}")).json()
    assert (earlier["commit"], earlier["commits"]) == (None, {})
    assert (await http.get(f"{path}/turn_none")).status_code == 404
