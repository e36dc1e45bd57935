"""Evidence cannot become outdated unnoticed: the page reports a change of any file that a run loaded."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bench.prove import page, registry, results
from bench.prove.figure import Figure
from bench.prove.loaded_files import LoadedFiles, hash_files
from bench.prove.registry import Claim
from bench.prove.results import Result

pytestmark = pytest.mark.timing


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "package"
    package.mkdir(parents=True)
    for name in ("__init__", "loaded", "unused"):
        (package / f"{name}.py").write_text("VALUE = 1\n")
    (package / "query.sql").write_text("select 1;\n")
    return tmp_path


@pytest.mark.parametrize("start", ["from source", "from bytecode"])
def test_files_loaded_by_a_killed_process_are_recorded(checkout: Path, start: str) -> None:
    program = (
        "import package.loaded, pathlib; pathlib.Path(package.__path__[0], 'query.sql').read_text(); print(flush=True)"
    )
    if start == "from bytecode":
        _run_and_kill(checkout, program)
    with LoadedFiles(checkout, ["src"]) as loaded:
        _run_and_kill(checkout, program)
    assert loaded.paths == {f"src/package/{name}" for name in ("__init__.py", "loaded.py", "query.sql")}


def _run_and_kill(checkout: Path, program: str) -> None:
    """Starts with a clean environment: the watch needs no cooperation."""
    command = [sys.executable, "-c", f"{program}; import time; time.sleep(60)"]
    process = subprocess.Popen(command, env={"PYTHONPATH": str(checkout / "src")}, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_a_changed_file_is_reported_for_the_claims_that_loaded_it(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    claims = {"core-1": ["src/package/loaded.py"], "core-2": ["src/package/query.sql"], "core-3": []}
    for key, paths in claims.items():
        code = hash_files(paths, checkout)
        result = Result.create(key, "A claim.", Figure(headline="1 of 1", holds=True), seconds=1, code=code)
        results.write_result(result)
    monkeypatch.setattr(Result, "is_current", lambda result: is_current(result, checkout))
    assert page.parse_states(page.render()) == {
        "core-1": "current",
        "core-2": "current",
        "core-3": "code changed since",
    }
    (checkout / "src/package/loaded.py").write_text("VALUE = 2\n")
    assert page.parse_states(page.render()) == {
        "core-1": "code changed since",
        "core-2": "current",
        "core-3": "code changed since",
    }
    (checkout / "src/package/query.sql").unlink()
    assert page.parse_states(page.render())["core-2"] == "code changed since"


is_current = Result.is_current


def test_the_page_lists_every_claim() -> None:
    text = page.render()
    assert [claim.key for claim in registry.claims() if f"`just prove {claim.key}`" not in text] == []
    assert Claim("core-2").title in text


def test_a_long_headline_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    result = Result(claim="core-1", title="A claim.", date="2026-11-17", holds=True, headline="word " * 16, seconds=1)
    results.write_result(result)
    assert len(page.find_long_headlines()) == 1
