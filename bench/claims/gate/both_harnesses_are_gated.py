"""The gate applies to both harnesses: every claim about it holds for each of them, with no case skipped.

All tests of the gate run with each harness. Then the last full result of every claim is read, which has the number of
cases of each harness. Only the parsing of commands (gate-2) has no harness: it is one function, and the other claims
show that both harnesses use it.
"""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

from bench.prove import registry
from bench.prove.figure import Figure, require
from bench.support import pytest_suite
from bench.support.bypass.session_attempts import HARNESSES
from footplate.domain.json import Json

ROOT: Final = Path(__file__).resolve().parents[3]
_TESTS: Final = {
    "native": "tests/integration/harness/test_gate.py",
    "claude": "tests/integration/harness/claude/test_gate.py",
}
_CLAIMS_WITHOUT_HARNESS: Final = ("gate-2", "gate-10")


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    tests = {} if quick else {harness: len(await pytest_suite.run_tests(path)) for harness, path in _TESTS.items()}
    claims = [
        claim.key
        for claim in registry.claims()
        if claim.key.startswith("gate-") and claim.key not in _CLAIMS_WITHOUT_HARNESS
    ]
    counts = {key: await asyncio.to_thread(_read_case_counts, key) for key in claims}
    lacking = [
        f"{key} has no cases of {harness}"
        for key, of_harness in counts.items()
        for harness in HARNESSES
        if not of_harness.get(harness)
    ]
    cases = f"{len(claims)} claims, each with cases of `native` and `claude`"
    if lacking:
        cases = f"{len(lacking)} faults, the first: {lacking[0]}"
    ran = ", ".join(f"{number} of `{harness}`" for harness, number in tests.items())
    test_summary = f"tests of the gate: {ran}, all passed and none skipped" if ran else "the tests run in CI's lanes"
    headline = f"{len(claims)} claims shown with both harnesses"
    if tests:
        headline += f", {sum(tests.values())} tests passed, none skipped"
    if lacking:
        headline = f"{len(lacking)} claims lack cases of a harness"
    details: dict[str, Json] = {"tests": {**tests}, "cases": {key: dict(each) for key, each in counts.items()}}
    return Figure(headline=headline, summary=f"{test_summary}; {cases}", holds=not lacking, details=details)


def _read_case_counts(key: str) -> dict[str, Any]:
    """Returns the cases by harness of the last full result. A claim without a result fails this one."""
    file = ROOT / "bench" / "results" / f"{key}.json"
    require(holds=file.is_file(), otherwise=f"{key} was never run at full size")
    found: dict[str, Any] = json.loads(file.read_text())
    require(holds=bool(found["holds"]), otherwise=f"{key} did not hold")
    return dict(found["details"].get("harnesses") or {})
