"""Both harnesses meet the gate: every claim about it was shown with each of them, and no case was skipped.

The tests of the gate in front of each harness run, all of them; then the last full figure of every claim is read: each
says how many cases of which harness it had. Only how a command is read (gate-2) is shown without one: it is one
function, and the other claims show that it stands before both.
"""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

from bench.prove import registry
from bench.prove.figure import Figure, require
from bench.support import suite
from bench.support.bypass.sessions import HARNESSES
from footplate.domain.json import Json

ROOT: Final = Path(__file__).resolve().parents[3]
_TESTS: Final = {
    "native": "tests/integration/harness/test_gate.py",
    "claude": "tests/integration/harness/claude/test_gate.py",
}
_WITHOUT: Final = ("gate-2", "gate-10")


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    tests = {} if quick else {harness: len(await suite.ran(path)) for harness, path in _TESTS.items()}
    claims = [claim.key for claim in registry.claims() if claim.key.startswith("gate-") and claim.key not in _WITHOUT]
    counts = {key: await asyncio.to_thread(_counts, key) for key in claims}
    lacking = [
        f"{key} says nothing of {harness}"
        for key, of_harness in counts.items()
        for harness in HARNESSES
        if not of_harness.get(harness)
    ]
    cases = f"{len(claims)} claims, each with cases of `native` and `claude`"
    if lacking:
        cases = f"{len(lacking)} faults, the first: {lacking[0]}"
    ran = ", ".join(f"{number} of `{harness}`" for harness, number in tests.items())
    shown = f"tests of the gate: {ran}, all passed and none skipped" if ran else "the tests run in CI's lanes"
    details: dict[str, Json] = {"tests": {**tests}, "cases": {key: dict(each) for key, each in counts.items()}}
    return Figure(text=f"{shown}; {cases}", holds=not lacking, details=details)


def _counts(key: str) -> dict[str, Any]:
    """Cases by harness in the last full figure. A claim that has none was never run: that is a fault."""
    file = ROOT / "bench" / "results" / f"{key}.json"
    require(holds=file.is_file(), otherwise=f"{key} was never run at full size")
    found: dict[str, Any] = json.loads(file.read_text())
    require(holds=bool(found["holds"]), otherwise=f"{key} did not hold")
    return dict(found["details"].get("harnesses") or {})
