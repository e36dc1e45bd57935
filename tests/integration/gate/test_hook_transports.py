"""Hooks that the worker calls itself: HTTP servers and Python entry points. Every failure denies the call in time."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook
from tests.unit.gate.test_turn_gate import GateSetup

from footplate.domain.json import JsonObject
from footplate.domain.network.command_network_access import Network
from footplate.domain.organisations.principals import Author
from footplate.domain.policy.hooks import HookAccess
from footplate.domain.policy.permissions import Decision, Layer, PermissionOutcome
from footplate.gate.hooks.transports import python
from footplate.telemetry import metrics
from footplate.testing.faulty_hooks import HookServer, install_faulty_hooks, start_hook_server

pytestmark = pytest.mark.timing

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def place(tmp_path: Path) -> GateSetup:
    return GateSetup(tmp_path)


@pytest.fixture
async def server() -> AsyncIterator[HookServer]:
    async with start_hook_server() as found:
        yield found


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_faulty_hooks(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))


def allow_host(server: HookServer, host: str = "127.0.0.1") -> HookAccess:
    return HookAccess(hosts=Network.allow([f"{host}:{server.port}"]), secret=SECRET)


async def decide_with_hook(
    place: GateSetup, hook: JsonObject, layer: Layer = Layer.PROJECT, seconds: float = 20
) -> Decision:
    group: JsonObject = {"hooks": [{**hook, "timeout": seconds}]}
    place.rules.layers = {layer: {"hooks": {"PreToolUse": [group]}}}
    return await place.decide("bash", command="make")


async def decide_over_http(place: GateSetup, server: HookServer, **more: Any) -> Decision:
    return await decide_with_hook(place, {"type": "http", "url": server.url}, **more)


async def decide_with_python(place: GateSetup, name: str, seconds: float = 20, **options: Any) -> Decision:
    return await decide_with_hook(place, {"type": "python", "name": name, "options": options}, seconds=seconds)


async def test_a_server_gets_claude_codes_fields_and_a_signature(place: GateSetup, server: HookServer) -> None:
    place.access = allow_host(server)
    assert (await decide_over_http(place, server)).outcome is PermissionOutcome.ALLOW
    ((headers, body),) = server.requests
    payload = Webhook(SECRET).verify(body, dict(headers))
    assert (payload["hook_event_name"], payload["tool_name"], payload["tool_input"]) == (
        "PreToolUse",
        "Bash",
        {"command": "make"},
    )
    assert headers["content-type"] == "application/json"
    assert not {"cookie", "authorization"} & headers.keys()


async def test_a_servers_decision_counts_like_any_hooks(place: GateSetup, server: HookServer) -> None:
    place.access = allow_host(server)
    server.set_response({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not today"}})
    decision = await decide_over_http(place, server)
    assert (decision.outcome, decision.reason, decision.layer) == (PermissionOutcome.DENY, "not today", Layer.PROJECT)
    assert decision.hook == f"http://127.0.0.1:{server.port}/check"
    server.set_response({"decision": "ask"})
    assert (await decide_over_http(place, server)).outcome is PermissionOutcome.ASK
    server.set_response(b"", status="204 No Content")
    assert (await decide_over_http(place, server)).outcome is PermissionOutcome.ALLOW


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
async def test_every_invalid_response_of_a_server_denies_the_call(
    place: GateSetup, server: HookServer, response: Any, status: str, extra: str, reason: str
) -> None:
    place.access = allow_host(server)
    server.set_response(response, status, extra)
    decision = await decide_over_http(place, server)
    assert decision.outcome is PermissionOutcome.DENY
    assert reason in decision.reason


async def test_a_server_that_hangs_floods_or_is_gone_denies_the_call_in_time(
    place: GateSetup, server: HookServer
) -> None:
    place.access = allow_host(server)
    server.response = None
    began = time.monotonic()
    assert "did not respond within 1 s" in (await decide_over_http(place, server, seconds=1)).reason
    assert time.monotonic() - began < 15
    server.response, server.floods = b"HTTP/1.1 200 OK\r\n\r\n", True
    assert "too large" in (await decide_over_http(place, server)).reason
    server.response, server.floods = b"", False
    assert "request to the hook failed" in (await decide_over_http(place, server)).reason


async def test_only_allowed_hosts_are_called(place: GateSetup, server: HookServer) -> None:
    for access, reason in (
        (HookAccess(), "which is empty"),
        (allow_host(server, "localhost"), "not in the list of allowed hook hosts"),
        (HookAccess(hosts=Network.allow(["127.0.0.1"]), secret=SECRET), "not in the list of allowed hook hosts"),
        (HookAccess(hosts=Network.allow([f"127.0.0.1:{server.port}"])), "FOOTPLATE_HOOK_SECRET"),
    ):
        place.access = access
        decision = await decide_over_http(place, server)
        assert decision.outcome is PermissionOutcome.DENY
        assert reason in decision.reason
    assert server.requests == []


async def test_http_hooks_of_a_session_are_refused(place: GateSetup, server: HookServer) -> None:
    place.access = allow_host(server)
    decision = await decide_over_http(place, server, layer=Layer.SESSION)
    assert decision.outcome is PermissionOutcome.DENY
    assert "by the organisation or a project" in decision.reason
    assert server.requests == []


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
async def test_python_hooks_that_fail_or_deny(place: GateSetup, name: str, reason: str) -> None:
    decision = await decide_with_python(place, name, seconds=1 if name == "hangs" else 60, what="this")
    assert decision.outcome is PermissionOutcome.DENY
    assert reason in decision.reason
    (entry,) = place.recorded
    assert (entry.kind, entry.outcome, entry.tool, entry.layer) == ("hook", "deny", "Bash", "project")
    assert entry.content is not None
    assert (entry.content["hook"], entry.content["type"], entry.content["hook_event"]) == (name, "python", "PreToolUse")
    assert entry.content.get("failed", False) is (name != "polite")


@pytest.mark.usefixtures("installed")
async def test_a_python_hook_does_not_see_the_workers_variables(
    place: GateSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOOTPLATE_DATABASE_URL", "postgresql://somebody")
    assert (await decide_with_python(place, "silent")).outcome is PermissionOutcome.ALLOW
    assert (await decide_with_python(place, "nobody")).outcome is PermissionOutcome.DENY


@pytest.mark.requirement("S7")
async def test_the_builtin_hooks_are_installed() -> None:
    assert {"audit", "members", "metrics", "validation"} <= {*python.list_installed_hooks()}


async def test_the_audit_hook_records_the_input_of_a_call(place: GateSetup) -> None:
    assert (await decide_with_python(place, "audit")).outcome is PermissionOutcome.ALLOW
    (entry,) = place.recorded
    assert entry.content is not None
    assert entry.content["audit"] == {"tool_input": {"command": "make"}}
    assert entry.outcome == "none"
    assert entry.is_intact


async def test_the_metrics_hook_counts_calls(place: GateSetup) -> None:
    counted = metrics.HOOK_COUNTS.labels("PreToolUse.Bash")
    before = counted._value.get()
    await decide_with_python(place, "metrics")
    assert counted._value.get() == before + 1


@pytest.mark.requirement("S8")
async def test_the_members_hook_decides_by_the_author_of_the_turn(place: GateSetup) -> None:
    decisions = []
    for place.author in (Author("memb_1", "Ann", "person"), Author("memb_2", "Bob", "person"), None):
        decisions.append(await decide_with_python(place, "members", only=["memb_1", "Carl"]))
    assert [decision.outcome.value for decision in decisions] == ["allow", "deny", "deny"]
    assert decisions[1].reason == "It is not permitted in a turn of Bob."
    assert [entry.principal for entry in place.recorded] == ["memb_1", "memb_2", None]
    place.author = Author("memb_3", "Carl")
    assert (await decide_with_python(place, "members", only=["Carl"])).outcome is PermissionOutcome.ALLOW
    assert "KeyError" in (await decide_with_python(place, "members")).reason


async def test_the_validation_hook_denies_input_that_does_not_match(place: GateSetup) -> None:
    schema: dict[str, Any] = {"properties": {"command": {"maxLength": 3}}}
    decision = await decide_with_python(place, "validation", schema=schema)
    assert decision.outcome is PermissionOutcome.DENY
    assert "at /command: 'make' is too long" in decision.reason
    schema["properties"]["command"]["maxLength"] = 4
    assert (await decide_with_python(place, "validation", schema=schema)).outcome is PermissionOutcome.ALLOW
    assert "SchemaError" in (await decide_with_python(place, "validation", schema={"type": 7})).reason
    assert "KeyError" in (await decide_with_python(place, "validation")).reason
    remote_schema = {"$ref": "http://127.0.0.1:1/schema.json"}
    assert "Unresolvable" in (await decide_with_python(place, "validation", schema=remote_schema)).reason


async def test_every_reason_of_a_hook_can_be_stored(place: GateSetup, server: HookServer) -> None:
    place.access = allow_host(server)
    server.set_response(b'{"decision": "block", "reason": "a\\u0000b\\ud800c"}')
    decision = await decide_over_http(place, server)
    assert decision.reason.startswith("a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}")
    assert decision.reason.encode()
    decision = await decide_with_hook(place, {"type": "command", "command": "printf 'a\\0b\\377c' >&2; exit 2"})
    assert decision.reason == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"
