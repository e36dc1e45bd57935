"""An API and a worker run in one process, built as in production except for what a test replaces."""

import httpx2
import pytest
from tests.integration.engine.cell import DONE, Engine

from footplate.domain import ids
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions import events
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.store.resources.api_keys import ApiKeys
from footplate.wiring.api import build_api
from footplate.wiring.connections import Overrides

pytestmark = pytest.mark.timing


async def test_a_message_to_the_api_becomes_a_turn_of_the_worker(idle_engine: Engine) -> None:
    engine, cell = idle_engine.with_own_queue(), idle_engine.cell
    keys, organisation = ApiKeys(cell.database), ids.new_id("o").replace("_", "-")
    secret = await keys.create_key(organisation, "first", ["admin"])
    engine.principal = await keys.authenticate(secret)

    async def answer(turn: TurnContext) -> TurnOutcome:
        await turn.log.append([events.message(f"{turn.content[0]['text']} back")])
        return DONE

    overrides = Overrides(database=cell.database, objects=cell.objects)
    async with engine.worker() as worker, build_api(engine.settings, overrides) as api:
        transport = httpx2.ASGITransport(api.app)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://localhost", headers={"x-api-key": secret}
        ) as http:
            agent = (await http.post("/v1/agents", json={"name": "a", "model": "m"})).json()["id"]
            environment = (await http.post("/v1/environments", json={"name": "e"})).json()["id"]
            created = await http.post("/v1/sessions", json={"agent": agent, "environment_id": environment})
            session_id = created.json()["id"]
            engine.harness.work[session_id] = answer
            message = {"type": "user.message", "content": [events.text_block("hi")]}
            sent = await http.post(f"/v1/sessions/{session_id}/events", json={"events": [message]})
            assert sent.status_code == 200, sent.text
            (turn,) = await engine.wait_for_ended_turns(session_id)
            listed = (await http.get(f"/v1/sessions/{session_id}/events")).json()["data"]
            health = (await http.get("/readyz")).json()
    assert turn.status is TurnStatus.COMPLETED
    assert [event["content"][0]["text"] for event in listed if event["type"] == events.AGENT_MESSAGE] == ["hi back"]
    assert health["status"] == "ok", health
    assert worker.connections.database is cell.database
    assert await engine.types(session_id), "parts of the test stay open"
