"""Scripts in Python, the journal, and the control endpoints, as another process sees them."""

import asyncio
from collections.abc import Sequence

import anthropic
import httpx2
import pytest

from footplate.testing import Request, ScriptedModel, Step, replies, script_json, text
from footplate.testing.server.request_journal import Record, RequestJournal

pytestmark = pytest.mark.timing


async def request_text(client: anthropic.AsyncAnthropic, prompt: str, **headers: str) -> str:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    message = await client.messages.create(
        model="m", max_tokens=9, messages=[{"role": "user", "content": prompt}], extra_headers=named
    )
    assert message.content[0].type == "text"
    return message.content[0].text


async def test_python_scripts_see_the_request(model: ScriptedModel, client: anthropic.AsyncAnthropic) -> None:
    def plain(request: Request) -> Sequence[Step]:
        assert request.headers["authorization"] == "Bearer test"
        return [text(f"{request.script} {request.n} {request.attempt} {request.session} {request.body['model']}")]

    async def patient(request: Request) -> Sequence[Step]:
        await asyncio.sleep(0.01)
        return [text(request.prompt)]

    model.install("plain", plain)
    model.install("patient", patient)
    assert await request_text(client, "[[script:plain]]", x_footplate_session="sesn_1") == "plain 0 0 sesn_1 m"
    assert await request_text(client, "[[script:plain]]", x_footplate_session="sesn_1") == "plain 0 1 sesn_1 m"
    assert await request_text(client, "[[script:patient]]") == "[[script:patient]]"


async def test_a_session_has_a_script_of_its_own(model: ScriptedModel, client: anthropic.AsyncAnthropic) -> None:
    model.install("sesn_1", replies([text("for {session}")]))
    assert await request_text(client, "hi", x_footplate_session="sesn_1") == "for sesn_1"
    assert await request_text(client, "hi", x_footplate_session="sesn_2") == "You said: hi"


async def test_a_script_without_a_reply_is_a_400(model: ScriptedModel, client: anthropic.AsyncAnthropic) -> None:
    def broken(_: Request) -> Sequence[Step]:
        raise ValueError("no luck")

    model.install("broken", broken)
    model.install("empty", replies())
    with pytest.raises(anthropic.BadRequestError, match="there is no script 'missing'"):
        await request_text(client, "[[script:missing]]")
    with pytest.raises(anthropic.BadRequestError, match="no luck"):
        await request_text(client, "[[script:broken]]")
    with pytest.raises(anthropic.BadRequestError, match=r"has 0 replies, but reply 0 \(counted from 0\) was requested"):
        await request_text(client, "[[script:empty]]")


async def test_control_over_http(model: ScriptedModel, client: anthropic.AsyncAnthropic) -> None:
    async with httpx2.AsyncClient(base_url=model.url, trust_env=False) as control:
        script = script_json.dumps(replies([text("installed")]))
        assert (await control.put("/_control/scripts/late", content=script)).status_code == 200
        assert await request_text(client, "[[script:late]]") == "installed"
        assert await request_text(client, "unmarked") == "You said: unmarked"

        everything = (await control.get("/_control/requests")).json()["data"]
        assert [line["script"] for line in everything] == ["late", "default"]
        (line,) = (await control.get("/_control/requests?script=late")).json()["data"]
        assert line["body"]["messages"][0]["content"] == "[[script:late]]"
        assert line["headers"]["host"]
        assert (line["n"], line["attempt"], line["status"], line["outcome"]) == (0, 0, 200, "complete")
        assert line["time"] <= line["answered_at"] <= line["ended_at"]
        (bare,) = (await control.get("/_control/requests?script=late&bodies=false")).json()["data"]
        assert "body" not in bare

        assert (await control.delete("/_control/requests")).status_code == 200
        assert (await control.get("/_control/requests")).json() == {"data": []}
        assert model.requests() == []


async def test_control_refuses_mistakes(model: ScriptedModel) -> None:
    async with httpx2.AsyncClient(base_url=model.url, trust_env=False) as control:
        bad = await control.put("/_control/scripts/late", content=b'{"replies": [[{"txt": 1}]]}')
        assert bad.status_code == 400
        assert "a step must be" in bad.json()["error"]["message"]
        assert (await control.put("/_control/scripts/a%20b", content=b'{"replies": []}')).status_code == 400
        assert (await control.get("/_control/nothing")).status_code == 404


async def test_a_request_like_the_claude_clis(model: ScriptedModel) -> None:
    model.install("s", replies([text("ok")]))
    messages = [{"role": "system", "content": "reminder"}, {"role": "user", "content": "[[script:s]]"}]
    async with httpx2.AsyncClient(base_url=model.url, trust_env=False) as client:
        body = {"model": "m", "stream": True, "messages": messages}
        response = await client.post("/v1/messages?beta=true", json=body, headers={"x-claude-code-session-id": "c1"})
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["request-id"].startswith("req_")
    assert response.text.endswith('event: message_stop\ndata: {"type":"message_stop"}\n\n')
    (record,) = model.requests("s")
    assert (record.query, record.session) == ("beta=true", "c1")


def test_old_bodies_are_dropped_for_new_ones() -> None:
    journal = RequestJournal(keep_bytes=10)
    for raw in (b'{"a":1}', b'{"b":2}'):
        journal.add(Record(time=0, method="POST", path="/", query="", headers={}, raw=raw))
    assert [record.body for record in journal.list_records()] == [None, {"b": 2}]
