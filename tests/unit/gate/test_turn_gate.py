"""The gate of a turn applies the effective rules, follows real links, and denies calls if rules are invalid."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.integration.harness.doubles import LocalEnvironment

from footplate.domain.agents.agents_and_config import ResolvedConfig, resolve_config
from footplate.domain.audit import AuditEntry
from footplate.domain.errors import Unavailable
from footplate.domain.json import Json, JsonObject
from footplate.domain.organisations.principals import Author
from footplate.domain.policy.hooks import HookAccess
from footplate.domain.policy.permissions import Decision, Layer, PermissionOutcome
from footplate.gate import turn_gate
from footplate.gate.hooks.hook_runner import HookRunner, HookTurn
from footplate.gate.turn_gate import TurnGate

CONFIG = ResolvedConfig(harness="native", model="m", system="", tools=("bash", "read"))
TOOLSET = "agent_toolset_20260401"


@dataclass
class FakeRules:
    layers: dict[Layer, JsonObject] = field(default_factory=dict)
    reads: int = 0
    failure: Exception | None = None

    async def rules(
        self, organisation: str, session_id: str, *, directory: str | None = None
    ) -> Sequence[tuple[Layer, JsonObject]]:
        self.reads += 1
        if self.failure is not None:
            raise self.failure
        return [*self.layers.items()]


class GateSetup:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.rules = FakeRules()
        self.environment = LocalEnvironment(root)
        self.access = HookAccess()
        self.context: JsonObject = {}
        self.author: Author | None = None
        self.recorded: list[AuditEntry] = []

    async def record(self, organisation: str, session_id: str, turn_id: str, runs: Sequence[AuditEntry]) -> None:
        self.recorded += runs

    def gate(self, config: ResolvedConfig = CONFIG) -> TurnGate:
        scene = HookTurn("org", "sesn", "turn", self.environment, self.context, self.author)
        return TurnGate(self.rules, scene, config, HookRunner(self.access, self))

    async def decide(self, tool: str, config: ResolvedConfig = CONFIG, **given: Any) -> Decision:
        return await self.gate(config).decide(tool, given)


@pytest.fixture
def gate_setup(tmp_path: Path) -> GateSetup:
    return GateSetup(tmp_path)


def _agent(*tools: JsonObject, **more: Any) -> ResolvedConfig:
    return resolve_config({"tools": [*tools], **more}, {}, default_harness="native")


async def test_without_rules_everything_is_allowed(gate_setup: GateSetup) -> None:
    for layer in Layer:
        gate_setup.rules.layers[layer] = {"deny": [], "ask": [], "allow": []}
    decision = await gate_setup.decide("bash", command="rm -rf / # whatever; $(it) 'is")
    assert (decision.outcome, decision.rule, decision.event_fields) == (PermissionOutcome.ALLOW, None, None)
    assert (await gate_setup.decide("some_custom_tool", x=1)).outcome is PermissionOutcome.ALLOW


@pytest.mark.requirement("S8")
async def test_each_layer_is_obeyed_and_named(gate_setup: GateSetup) -> None:
    for layer in (Layer.ORGANISATION, Layer.PROJECT, Layer.SESSION):
        gate_setup.rules.layers = {layer: {"deny": ["Bash(rm *)"]}}
        decision = await gate_setup.decide("bash", command="ls && rm x")
        assert (decision.outcome, decision.layer, decision.rule) == (PermissionOutcome.DENY, layer, "Bash(rm *)")
        assert layer.label in decision.refusal
    gate_setup.rules.layers = {}
    decision = await gate_setup.decide("bash", _agent(permissions={"deny": ["Bash(rm *)"]}), command="rm x")
    assert (decision.outcome, decision.layer) == (PermissionOutcome.DENY, Layer.AGENT)


async def test_one_rule_in_any_layer_makes_approval_the_default(gate_setup: GateSetup) -> None:
    gate_setup.rules.layers = {Layer.ORGANISATION: {"deny": ["Bash(curl *)"]}}
    assert (await gate_setup.decide("bash", command="make")).outcome is PermissionOutcome.ASK
    gate_setup.rules.layers[Layer.SESSION] = {"allow": ["Bash(make *)"]}
    assert (await gate_setup.decide("bash", command="make")).outcome is PermissionOutcome.ALLOW
    allowing = _agent({"type": TOOLSET, "default_config": {"permission_policy": {"type": "always_allow"}}})
    gate_setup.rules.layers = {Layer.ORGANISATION: {"deny": ["Bash(curl *)"]}}
    assert (await gate_setup.decide("bash", allowing, command="make")).outcome is PermissionOutcome.ALLOW
    assert (await gate_setup.decide("bash", allowing, command="curl x")).outcome is PermissionOutcome.DENY


async def test_toolset_policies_are_not_rules_for_other_tools(gate_setup: GateSetup) -> None:
    asking = _agent({"type": TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]})
    assert (await gate_setup.decide("bash", asking, command="ls")).outcome is PermissionOutcome.ASK
    assert (await gate_setup.decide("write", asking, file_path="x", content="y")).outcome is PermissionOutcome.ALLOW
    server: JsonObject = {"type": "mcp_toolset", "mcp_server_name": "m"}
    known = {"mcp_servers": [{"name": "m", "url": "https://m.example"}]}
    assert (await gate_setup.decide("mcp__m__note", _agent(server, **known))).outcome is PermissionOutcome.ASK
    allowing: JsonObject = {**server, "default_config": {"permission_policy": {"type": "always_allow"}}}
    assert (await gate_setup.decide("mcp__m__note", _agent(allowing, **known))).outcome is PermissionOutcome.ALLOW


async def test_an_mcp_server_of_a_trusted_repository_is_treated_as_a_program(gate_setup: GateSetup) -> None:
    agent = _agent({"type": TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]})
    assert (await gate_setup.decide("mcp__brought__note", agent)).outcome is PermissionOutcome.ALLOW
    gate_setup.rules.layers = {Layer.PROJECT: {"deny": ["Read(.env)"]}}
    assert (await gate_setup.decide("mcp__brought__note", agent)).outcome is PermissionOutcome.ASK
    gate_setup.rules.layers = {Layer.PROJECT: {"deny": ["mcp__brought"]}}
    assert (await gate_setup.decide("mcp__brought__note", agent)).outcome is PermissionOutcome.DENY


async def test_a_subagent_has_no_more_permissions_than_its_parent(gate_setup: GateSetup) -> None:
    asking: JsonObject = {"type": TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]}
    members: list[JsonObject] = [
        {"name": "free", "tools": [{"type": TOOLSET}], "permissions": {"allow": ["Bash", "Edit"]}},
        {"name": "careful", "tools": [asking], "permissions": {"deny": ["WebFetch"]}},
    ]
    agent = _agent(
        {"type": TOOLSET}, permissions={"deny": ["Bash(rm *)"]}, multiagent={"type": "coordinator", "agents": members}
    )

    async def decide(agent_name: str | None, tool: str, **given: Json) -> PermissionOutcome:
        return (await gate_setup.gate(agent).decide(tool, given, agent=agent_name)).outcome

    assert await decide("free", "bash", command="make") is PermissionOutcome.ALLOW
    assert await decide("free", "bash", command="rm x") is PermissionOutcome.DENY
    assert await decide("careful", "bash", command="ls") is PermissionOutcome.ASK
    assert await decide("careful", "web_fetch", url="https://x.example") is PermissionOutcome.DENY
    assert await decide(None, "web_fetch", url="https://x.example") is PermissionOutcome.ASK
    assert await decide(None, "Agent", subagent_type="free", prompt="Go.") is PermissionOutcome.ALLOW


async def test_links_are_followed_where_the_call_would_run(gate_setup: GateSetup) -> None:
    (gate_setup.root / "src").mkdir()
    (gate_setup.root / ".env").write_text("secret")
    (gate_setup.root / "src" / "harmless").symlink_to("../.env")
    (gate_setup.root / "out").symlink_to("/etc")
    gate_setup.rules.layers = {Layer.PROJECT: {"deny": ["Read(.env)"], "allow": ["Edit(src/**)"]}}
    assert (await gate_setup.decide("read", file_path="src/harmless")).outcome is PermissionOutcome.DENY
    assert (await gate_setup.decide("bash", command="cat src/harmless")).outcome is PermissionOutcome.DENY
    assert (await gate_setup.decide("read", file_path="out/hosts")).outcome is PermissionOutcome.ASK
    assert (await gate_setup.decide("read", file_path="src/other")).outcome is PermissionOutcome.ALLOW
    assert (await gate_setup.decide("write", file_path="src/new", content="")).outcome is PermissionOutcome.ALLOW
    assert (await gate_setup.decide("write", file_path="src/harmless", content="")).outcome is PermissionOutcome.DENY


async def test_a_command_is_evaluated_in_the_directory_of_the_shell(
    gate_setup: GateSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    (gate_setup.root / "secrets").mkdir()
    gate_setup.rules.layers = {Layer.PROJECT: {"deny": ["Read(/secrets/**)"], "allow": ["Bash(cat *)"]}}
    assert (await gate_setup.decide("bash", command="cat key")).outcome is PermissionOutcome.ALLOW

    async def moved() -> str:
        return str(gate_setup.root / "secrets")

    async def lost() -> None:
        return None

    monkeypatch.setattr(gate_setup.environment, "shell_directory", moved)
    assert (await gate_setup.decide("bash", command="cat key")).outcome is PermissionOutcome.DENY
    monkeypatch.setattr(gate_setup.environment, "shell_directory", lost)
    assert (await gate_setup.decide("bash", command="cat key")).outcome is PermissionOutcome.ASK


async def test_invalid_rules_deny_every_call(gate_setup: GateSetup) -> None:
    gate_setup.rules.layers = {Layer.PROJECT: {"allow": ["Bash("]}}
    decision = await gate_setup.decide("bash", command="ls")
    assert decision.outcome is PermissionOutcome.DENY
    assert "is invalid" in decision.reason


async def test_unavailable_rules_fail_the_call(gate_setup: GateSetup) -> None:
    gate_setup.rules.failure = Unavailable("The database does not answer.")
    with pytest.raises(Unavailable):
        await gate_setup.decide("bash", command="ls")


async def test_changed_rules_apply_to_running_turns(gate_setup: GateSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = gate_setup.gate()
    assert (await gate.decide("bash", {"command": "make"})).outcome is PermissionOutcome.ALLOW
    gate_setup.rules.layers = {Layer.ORGANISATION: {"deny": ["Bash(make *)"]}}
    await gate.decide("bash", {"command": "make"})
    assert gate_setup.rules.reads == 1
    monkeypatch.setattr(turn_gate, "RELOAD_SECONDS", 0.0)
    assert (await gate.decide("bash", {"command": "make"})).outcome is PermissionOutcome.DENY


async def test_rules_apply_to_the_whole_project_if_the_session_starts_in_a_subdirectory(gate_setup: GateSetup) -> None:
    gate_setup.environment.subdirectory = "below"
    gate_setup.rules.layers = {Layer.PROJECT: {"deny": ["Read(/secret)"]}}
    assert (await gate_setup.decide("read", file_path="../secret")).outcome is PermissionOutcome.DENY
    assert (await gate_setup.decide("read", file_path="secret")).outcome is PermissionOutcome.ALLOW
