"""Hooks that the worker calls itself: HTTP servers and Python entry points. Every failure denies the call in time."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook
from tests.unit.gate.test_door import Place

from footplate.domain.hooks import HookAccess
from footplate.domain.json import JsonObject
from footplate.domain.networks import Network
from footplate.domain.permissions import Decision, Layer, Outcome
from footplate.gate.askers import python
from footplate.telemetry import metrics
from footplate.testing.hooks import HookServer, install_bad_hooks, open_hook_server

pytestmark = pytest.mark.timing

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
async def server() -> AsyncIterator[HookServer]:
    async with open_hook_server() as found:
        yield found


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_bad_hooks(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))


def reaching(server: HookServer, host: str = "127.0.0.1") -> HookAccess:
    return HookAccess(hosts=Network.allow([f"{host}:{server.port}"]), secret=SECRET)


async def asked(place: Place, hook: JsonObject, layer: Layer = Layer.PROJECT, seconds: float = 20) -> Decision:
    group: JsonObject = {"hooks": [{**hook, "timeout": seconds}]}
    place.rules.layers = {layer: {"hooks": {"PreToolUse": [group]}}}
    return await place.ask("bash", command="make")


async def by_http(place: Place, server: HookServer, **more: Any) -> Decision:
    return await asked(place, {"type": "http", "url": server.url}, **more)


async def by_name(place: Place, name: str, seconds: float = 20, **options: Any) -> Decision:
    return await asked(place, {"type": "python", "name": name, "options": options}, seconds=seconds)


async def test_a_server_is_asked_in_claude_codes_words_and_signed(place: Place, server: HookServer) -> None:
    place.access = reaching(server)
    assert (await by_http(place, server)).outcome is Outcome.ALLOW
    ((headers, body),) = server.asked
    told = Webhook(SECRET).verify(body, dict(headers))
    assert (told["hook_event_name"], told["tool_name"], told["tool_input"]) == (
        "PreToolUse",
        "Bash",
        {"command": "make"},
    )
    assert headers["content-type"] == "application/json"
    assert not {"cookie", "authorization"} & headers.keys()


async def test_a_servers_word_counts_as_any_hooks(place: Place, server: HookServer) -> None:
    place.access = reaching(server)
    server.says({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not today"}})
    said = await by_http(place, server)
    assert (said.outcome, said.reason, said.layer) == (Outcome.DENY, "not today", Layer.PROJECT)
    assert said.hook == f"http://127.0.0.1:{server.port}/check"
    server.says({"decision": "ask"})
    assert (await by_http(place, server)).outcome is Outcome.ASK
    server.says(b"", status="204 No Content")
    assert (await by_http(place, server)).outcome is Outcome.ALLOW


@pytest.mark.parametrize(
    ("response", "status", "extra", "reason"),
    [
        ({"decision": "approve"}, "500 Oops", "", "HTTP status 500"),
        ({"decision": "approve"}, "404 Not Found", "", "HTTP status 404"),
        (b"", "302 Found", "location: http://127.0.0.1:1/\r\n", "HTTP status 302"),
        (b"{not json", "200 OK", "", "not valid"),
        (b"yes", "200 OK", "", "not a JSON object"),
        (b'["approve"]', "200 OK", "", "not a JSON object"),
        (b"{\xff}", "200 OK", "", "not valid"),
        (b'{"decision": NaN}', "200 OK", "", "not valid"),
        (b"{" * 2_000_000, "200 OK", "", "too large"),
        ({"decision": "perhaps"}, "200 OK", "", "'perhaps'"),
        ({"decision": "approve"}, "200 OK", "content-encoding: gzip\r\n", "compressed"),
        (b"\r\n\r\n", "2000 !!", "", "request to the hook failed"),
    ],
)
async def test_all_else_that_a_server_answers_is_a_no(
    place: Place, server: HookServer, response: Any, status: str, extra: str, reason: str
) -> None:
    place.access = reaching(server)
    server.says(response, status, extra)
    said = await by_http(place, server)
    assert said.outcome is Outcome.DENY
    assert reason in said.reason


async def test_a_server_that_hangs_floods_or_is_gone_is_a_no_in_time(place: Place, server: HookServer) -> None:
    place.access = reaching(server)
    server.answer = None
    began = time.monotonic()
    assert "did not respond within 1 s" in (await by_http(place, server, seconds=1)).reason
    assert time.monotonic() - began < 15
    server.answer, server.floods = b"HTTP/1.1 200 OK\r\n\r\n", True
    assert "too large" in (await by_http(place, server)).reason
    server.answer, server.floods = b"", False
    assert "request to the hook failed" in (await by_http(place, server)).reason


async def test_only_hosts_that_the_operator_named_are_asked(place: Place, server: HookServer) -> None:
    for access, reason in (
        (HookAccess(), "which is empty"),
        (reaching(server, "localhost"), "not in the list of allowed hook hosts"),
        (HookAccess(hosts=Network.allow(["127.0.0.1"]), secret=SECRET), "not in the list of allowed hook hosts"),
        (HookAccess(hosts=Network.allow([f"127.0.0.1:{server.port}"])), "FOOTPLATE_HOOK_SECRET"),
    ):
        place.access = access
        said = await by_http(place, server)
        assert said.outcome is Outcome.DENY
        assert reason in said.reason
    assert server.asked == []


async def test_an_agent_and_a_session_send_the_worker_nowhere(place: Place, server: HookServer) -> None:
    place.access = reaching(server)
    said = await by_http(place, server, layer=Layer.SESSION)
    assert said.outcome is Outcome.DENY
    assert "by the organisation or a project" in said.reason
    assert server.asked == []


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("hangs", "did not respond within"),
        ("crashes", "ValueError: out of order"),
        ("exits", "SystemExit: 3"),
        ("killed", "SIGKILL"),
        ("floods", "too large"),
        ("chatters", "too large"),
        ("eats", "MemoryError"),
        ("garbage", "TypeError"),
        ("words", "not a JSON object"),
        ("nobody", "No hook 'nobody' is installed"),
        ("polite", "not this"),
    ],
)
async def test_python_hooks_that_fail_or_refuse(place: Place, name: str, reason: str) -> None:
    said = await by_name(place, name, seconds=1 if name == "hangs" else 60, what="this")
    assert said.outcome is Outcome.DENY
    assert reason in said.reason
    (entry,) = place.recorded
    assert (entry.kind, entry.outcome, entry.tool, entry.layer) == ("hook", "deny", "Bash", "project")
    assert entry.content is not None
    assert (entry.content["hook"], entry.content["type"], entry.content["hook_event"]) == (name, "python", "PreToolUse")
    assert entry.content.get("failed", False) is (name != "polite")


@pytest.mark.usefixtures("installed")
async def test_a_python_hook_gets_nothing_of_the_workers_variables(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOOTPLATE_DATABASE_URL", "postgresql://somebody")
    assert (await by_name(place, "silent")).outcome is Outcome.ALLOW
    assert (await by_name(place, "nobody")).outcome is Outcome.DENY


@pytest.mark.requirement("S7")
async def test_the_shipped_hooks_are_installed() -> None:
    assert {"audit", "metrics", "validation"} <= {*python.installed()}


async def test_the_audit_hook_keeps_what_a_call_was_made_with(place: Place) -> None:
    assert (await by_name(place, "audit")).outcome is Outcome.ALLOW
    (entry,) = place.recorded
    assert entry.content is not None
    assert entry.content["audit"] == {"tool_input": {"command": "make"}}
    assert entry.outcome == "none"
    assert entry.is_whole


async def test_the_metrics_hook_counts(place: Place) -> None:
    counted = metrics.HOOK_COUNTS.labels("PreToolUse.Bash")
    before = counted._value.get()
    await by_name(place, "metrics")
    assert counted._value.get() == before + 1


async def test_the_validation_hook_refuses_what_does_not_fit(place: Place) -> None:
    schema: dict[str, Any] = {"properties": {"command": {"maxLength": 3}}}
    said = await by_name(place, "validation", schema=schema)
    assert said.outcome is Outcome.DENY
    assert "at /command: 'make' is too long" in said.reason
    schema["properties"]["command"]["maxLength"] = 4
    assert (await by_name(place, "validation", schema=schema)).outcome is Outcome.ALLOW
    assert "SchemaError" in (await by_name(place, "validation", schema={"type": 7})).reason
    assert "KeyError" in (await by_name(place, "validation")).reason
    far = {"$ref": "http://127.0.0.1:1/schema.json"}
    assert "Unresolvable" in (await by_name(place, "validation", schema=far)).reason


async def test_what_a_hook_says_can_be_stored_whatever_it_is(place: Place, server: HookServer) -> None:
    place.access = reaching(server)
    server.says(b'{"decision": "block", "reason": "a\\u0000b\\ud800c"}')
    said = await by_http(place, server)
    assert said.reason.startswith("a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}")
    assert said.reason.encode()
    said = await asked(place, {"type": "command", "command": "printf 'a\\0b\\377c' >&2; exit 2"})
    assert said.reason == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"
