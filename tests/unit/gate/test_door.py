"""The gate of a turn: the rules that are in force, the real links, and no word that opens anything by mistake."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.integration.harness.twins import LocalEnvironment

from footplate.domain.agents import ResolvedConfig, resolve
from footplate.domain.audit import AuditEntry
from footplate.domain.errors import Unavailable
from footplate.domain.hooks import HookAccess
from footplate.domain.json import Json, JsonObject
from footplate.domain.permissions import Decision, Layer, Outcome
from footplate.gate import door
from footplate.gate.asking import Asker, Scene
from footplate.gate.door import TurnGate

CONFIG = ResolvedConfig(harness="native", model="m", system="", tools=("bash", "read"))
TOOLSET = "agent_toolset_20260401"


@dataclass
class Rules:
    layers: dict[Layer, JsonObject] = field(default_factory=dict)
    reads: int = 0
    failure: Exception | None = None

    async def rules(
        self,
        _organisation: str,
        _session_id: str,
        *,
        directory: str | None = None,  # noqa: ARG002
    ) -> Sequence[tuple[Layer, JsonObject]]:
        self.reads += 1
        if self.failure is not None:
            raise self.failure
        return [*self.layers.items()]


class Place:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.rules = Rules()
        self.environment = LocalEnvironment(root)
        self.access = HookAccess()
        self.context: JsonObject = {}
        self.recorded: list[AuditEntry] = []

    async def record(self, _organisation: str, _session_id: str, _turn_id: str, runs: Sequence[AuditEntry]) -> None:
        self.recorded += runs

    def gate(self, config: ResolvedConfig = CONFIG) -> TurnGate:
        scene = Scene("org", "sesn", "turn", self.environment, self.context)
        return TurnGate(self.rules, scene, config, Asker(self.access, self))

    async def ask(self, tool: str, config: ResolvedConfig = CONFIG, **given: Any) -> Decision:
        return await self.gate(config).decide(tool, given)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def _agent(*tools: JsonObject, **more: Any) -> ResolvedConfig:
    return resolve({"tools": [*tools], **more}, {}, default_harness="native")


async def test_without_rules_everything_is_allowed(place: Place) -> None:
    for layer in Layer:
        place.rules.layers[layer] = {"deny": [], "ask": [], "allow": []}
    decision = await place.ask("bash", command="rm -rf / # whatever; $(it) 'is")
    assert (decision.outcome, decision.rule, decision.told) == (Outcome.ALLOW, None, None)
    assert (await place.ask("some_custom_tool", x=1)).outcome is Outcome.ALLOW


async def test_each_layer_is_obeyed_and_named(place: Place) -> None:
    for layer in (Layer.ORGANISATION, Layer.PROJECT, Layer.SESSION):
        place.rules.layers = {layer: {"deny": ["Bash(rm *)"]}}
        decision = await place.ask("bash", command="ls && rm x")
        assert (decision.outcome, decision.layer, decision.rule) == (Outcome.DENY, layer, "Bash(rm *)")
        assert layer.label in decision.refusal
    place.rules.layers = {}
    decision = await place.ask("bash", _agent(permissions={"deny": ["Bash(rm *)"]}), command="rm x")
    assert (decision.outcome, decision.layer) == (Outcome.DENY, Layer.AGENT)


async def test_one_rule_anywhere_makes_asking_the_default(place: Place) -> None:
    place.rules.layers = {Layer.ORGANISATION: {"deny": ["Bash(curl *)"]}}
    assert (await place.ask("bash", command="make")).outcome is Outcome.ASK
    place.rules.layers[Layer.SESSION] = {"allow": ["Bash(make *)"]}
    assert (await place.ask("bash", command="make")).outcome is Outcome.ALLOW
    allowing = _agent({"type": TOOLSET, "default_config": {"permission_policy": {"type": "always_allow"}}})
    place.rules.layers = {Layer.ORGANISATION: {"deny": ["Bash(curl *)"]}}
    assert (await place.ask("bash", allowing, command="make")).outcome is Outcome.ALLOW
    assert (await place.ask("bash", allowing, command="curl x")).outcome is Outcome.DENY


async def test_what_toolsets_say_is_no_rule_for_other_tools(place: Place) -> None:
    asking = _agent({"type": TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]})
    assert (await place.ask("bash", asking, command="ls")).outcome is Outcome.ASK
    assert (await place.ask("write", asking, file_path="x", content="y")).outcome is Outcome.ALLOW
    server: JsonObject = {"type": "mcp_toolset", "mcp_server_name": "m"}
    known = {"mcp_servers": [{"name": "m", "url": "https://m.example"}]}
    assert (await place.ask("mcp__m__note", _agent(server, **known))).outcome is Outcome.ASK
    allowing: JsonObject = {**server, "default_config": {"permission_policy": {"type": "always_allow"}}}
    assert (await place.ask("mcp__m__note", _agent(allowing, **known))).outcome is Outcome.ALLOW


async def test_a_server_that_a_trusted_repository_brings_is_a_program_like_others(place: Place) -> None:
    agent = _agent({"type": TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]})
    assert (await place.ask("mcp__brought__note", agent)).outcome is Outcome.ALLOW
    place.rules.layers = {Layer.PROJECT: {"deny": ["Read(.env)"]}}
    assert (await place.ask("mcp__brought__note", agent)).outcome is Outcome.ASK
    place.rules.layers = {Layer.PROJECT: {"deny": ["mcp__brought"]}}
    assert (await place.ask("mcp__brought__note", agent)).outcome is Outcome.DENY


async def test_a_subagent_has_no_more_leave_than_who_asks_it(place: Place) -> None:
    asking: JsonObject = {"type": TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]}
    members: list[JsonObject] = [
        {"name": "free", "tools": [{"type": TOOLSET}], "permissions": {"allow": ["Bash", "Edit"]}},
        {"name": "careful", "tools": [asking], "permissions": {"deny": ["WebFetch"]}},
    ]
    agent = _agent(
        {"type": TOOLSET}, permissions={"deny": ["Bash(rm *)"]}, multiagent={"type": "coordinator", "agents": members}
    )

    async def said(who: str | None, tool: str, **given: Json) -> Outcome:
        return (await place.gate(agent).decide(tool, given, agent=who)).outcome

    assert await said("free", "bash", command="make") is Outcome.ALLOW
    assert await said("free", "bash", command="rm x") is Outcome.DENY
    assert await said("careful", "bash", command="ls") is Outcome.ASK
    assert await said("careful", "web_fetch", url="https://x.example") is Outcome.DENY
    assert await said(None, "web_fetch", url="https://x.example") is Outcome.ASK
    assert await said(None, "Agent", subagent_type="free", prompt="Go.") is Outcome.ALLOW


async def test_links_are_followed_where_the_call_would_run(place: Place) -> None:
    (place.root / "src").mkdir()
    (place.root / ".env").write_text("secret")
    (place.root / "src" / "harmless").symlink_to("../.env")
    (place.root / "out").symlink_to("/etc")
    place.rules.layers = {Layer.PROJECT: {"deny": ["Read(.env)"], "allow": ["Edit(src/**)"]}}
    assert (await place.ask("read", file_path="src/harmless")).outcome is Outcome.DENY
    assert (await place.ask("bash", command="cat src/harmless")).outcome is Outcome.DENY
    assert (await place.ask("read", file_path="out/hosts")).outcome is Outcome.ASK
    assert (await place.ask("read", file_path="src/other")).outcome is Outcome.ALLOW
    assert (await place.ask("write", file_path="src/new", content="")).outcome is Outcome.ALLOW
    assert (await place.ask("write", file_path="src/harmless", content="")).outcome is Outcome.DENY


async def test_a_command_is_read_from_where_the_shell_is(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.root / "secrets").mkdir()
    place.rules.layers = {Layer.PROJECT: {"deny": ["Read(/secrets/**)"], "allow": ["Bash(cat *)"]}}
    assert (await place.ask("bash", command="cat key")).outcome is Outcome.ALLOW

    async def moved() -> str:
        return str(place.root / "secrets")

    async def lost() -> None:
        return None

    monkeypatch.setattr(place.environment, "directory", moved)
    assert (await place.ask("bash", command="cat key")).outcome is Outcome.DENY
    monkeypatch.setattr(place.environment, "directory", lost)
    assert (await place.ask("bash", command="cat key")).outcome is Outcome.ASK


async def test_rules_that_cannot_be_read_deny(place: Place) -> None:
    place.rules.layers = {Layer.PROJECT: {"allow": ["Bash("]}}
    decision = await place.ask("bash", command="ls")
    assert decision.outcome is Outcome.DENY
    assert "is invalid" in decision.reason


async def test_rules_that_cannot_be_had_let_nothing_through(place: Place) -> None:
    place.rules.failure = Unavailable("The database does not answer.")
    with pytest.raises(Unavailable):
        await place.ask("bash", command="ls")


async def test_what_is_forbidden_now_is_forbidden_to_turns_that_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = place.gate()
    assert (await gate.decide("bash", {"command": "make"})).outcome is Outcome.ALLOW
    place.rules.layers = {Layer.ORGANISATION: {"deny": ["Bash(make *)"]}}
    await gate.decide("bash", {"command": "make"})
    assert place.rules.reads == 1
    monkeypatch.setattr(door, "FRESH", 0.0)
    assert (await gate.decide("bash", {"command": "make"})).outcome is Outcome.DENY
