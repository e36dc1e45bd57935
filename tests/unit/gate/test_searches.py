"""A search is denied exactly if it would show files that rules forbid to read."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.gate.test_turn_gate import GateSetup

from footplate.domain.policy.permissions import Layer, PermissionOutcome


@pytest.fixture
def gate_setup(tmp_path: Path) -> GateSetup:
    for name in ("src/a.py", "secrets/key.txt", "docs/deep/.env", "docs/guide.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "src/way").symlink_to("../secrets")
    made = GateSetup(tmp_path)
    made.rules.layers = {Layer.PROJECT: {"deny": ["Read(secrets/**)", "Read(.env)"]}}
    return made


@pytest.mark.parametrize(
    ("tool", "given", "outcome"),
    [
        ("grep", {"pattern": "x"}, "deny"),
        ("grep", {"pattern": "x", "path": "."}, "deny"),
        ("grep", {"pattern": "x", "path": "docs"}, "deny"),
        ("grep", {"pattern": "x", "path": "src"}, "allow"),
        ("grep", {"pattern": "x", "path": "src/a.py"}, "allow"),
        ("grep", {"pattern": "x", "path": "none"}, "allow"),
        ("grep", {"pattern": "x", "path": "secrets"}, "deny"),
        ("grep", {"pattern": "x", "path": "src/way"}, "deny"),
        ("Grep", {"pattern": "x"}, "deny"),
        ("glob", {"pattern": "**/*"}, "deny"),
        ("glob", {"pattern": "**/*.txt"}, "deny"),
        ("glob", {"pattern": "**/*.{py,txt}"}, "deny"),
        ("glob", {"pattern": "**/*.py"}, "allow"),
        ("glob", {"pattern": "secrets/*.txt"}, "deny"),
        ("glob", {"pattern": "src/**"}, "allow"),
        ("glob", {"pattern": "*.txt", "path": "secrets"}, "deny"),
        ("glob", {"pattern": "deep/.env", "path": "docs"}, "deny"),
    ],
)
async def test_decisions_about_searches(gate_setup: GateSetup, tool: str, given: dict[str, Any], outcome: str) -> None:
    assert (await gate_setup.decide(tool, **given)).outcome.value == outcome


async def test_a_denied_search_has_a_reason_and_a_session_cannot_allow_it(gate_setup: GateSetup) -> None:
    gate_setup.rules.layers[Layer.SESSION] = {"allow": ["Grep", "Glob", "Read"]}
    decision = await gate_setup.decide("grep", pattern="x")
    assert (decision.outcome, decision.layer) == (PermissionOutcome.DENY, Layer.PROJECT)
    assert "Search another directory" in decision.reason
    assert "key.txt" not in decision.reason
    gate_setup.rules.layers[Layer.PROJECT] = {"ask": ["Read(secrets/**)"]}
    assert (await gate_setup.decide("grep", pattern="x")).outcome is PermissionOutcome.ASK


async def test_without_rules_about_reading_no_files_are_listed(gate_setup: GateSetup) -> None:
    gate_setup.rules.layers = {Layer.PROJECT: {"deny": ["Bash(rm *)"]}}
    assert (await gate_setup.decide("grep", pattern="x")).outcome is PermissionOutcome.ALLOW
