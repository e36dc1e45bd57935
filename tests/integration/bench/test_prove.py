"""The runner of claims: which ones it selects, what counts as a failure, and what it stores."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from bench.ci.mutations import Mutation
from bench.prove import __main__ as runner
from bench.prove import registry, results
from bench.prove.figure import Figure, NotHeld, require
from bench.prove.registry import Claim
from bench.support import cluster_processes

pytestmark = pytest.mark.timing

CLAIM = Claim("core-1")


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    return tmp_path


def _set_outcome(monkeypatch: pytest.MonkeyPatch, outcome: Figure | Exception) -> None:
    async def prove(quick: bool) -> Figure:  # noqa: FBT001 - the signature of every claim
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(Claim, "load", lambda _claim: prove)


async def test_a_full_run_stores_its_figure_and_the_code_that_it_covers(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set_outcome(monkeypatch, Figure(headline="7 of 7", summary="All.", holds=True, details={"lost": 0}))
    assert await runner.run_full_size(CLAIM)
    result = results.load_result("core-1")
    assert result is not None
    assert (result.headline, result.summary, result.holds, result.details) == ("7 of 7", "All.", True, {"lost": 0})
    assert result.commit
    assert "src/footplate/domain/json.py" in result.code
    assert result.is_current()


async def test_a_sample_stores_nothing(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _set_outcome(monkeypatch, Figure(headline="1 of 1", holds=True))
    assert await runner.run_samples([CLAIM])
    assert _names(stored) == []


@pytest.mark.parametrize(
    "outcome", [Figure(headline="6 of 7", holds=False), NotHeld("one lost"), RuntimeError("broke")]
)
async def test_a_claim_that_does_not_hold_fails(monkeypatch: pytest.MonkeyPatch, outcome: Figure | Exception) -> None:
    _set_outcome(monkeypatch, outcome)
    assert not await runner.run_samples([CLAIM])


@pytest.mark.parametrize(
    ("outcome", "caught"),
    [
        (Figure(headline="7 of 7", holds=True), False),
        (Figure(headline="6 of 7", holds=False), True),
        (NotHeld("one lost"), True),
        (RuntimeError("broke"), False),
    ],
)
async def test_a_mutation_is_caught_by_a_sample_that_fails_but_not_by_one_that_crashes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], outcome: Figure | Exception, *, caught: bool
) -> None:
    _set_outcome(monkeypatch, outcome)
    await runner.run_samples([CLAIM, CLAIM])
    mutation = Mutation("x", breaks="", file="", before="", after="", caught_by=CLAIM.key)
    assert mutation.is_caught(capsys.readouterr().out) == caught


def _names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def test_claims_are_selected_by_key_name_group_or_all() -> None:
    assert [claim.key for claim in registry.select("core-2")] == ["core-2"]
    assert [claim.key for claim in registry.select("kill-any-process")] == ["core-2"]
    assert len(registry.select("core")) == 10
    assert registry.select("all") == registry.claims()
    assert registry.select("core-99") == []


def test_every_claim_has_a_module_and_every_module_is_a_claim() -> None:
    modules = {path for path in registry.CLAIMS.glob("*/*.py") if path.name != "__init__.py"}
    assert {claim.path for claim in registry.claims()} == modules
    assert len({claim.name for claim in registry.claims()}) == len(registry.claims())


def test_a_long_headline_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 15 words"):
        Figure(headline="word " * 16, holds=True)


def test_require_raises_if_the_claim_does_not_hold() -> None:
    with pytest.raises(NotHeld, match="lost one"):
        require(holds=False, otherwise="lost one")


def test_remaining_processes_are_found_by_mark_and_by_directory(tmp_path: Path) -> None:
    marked = subprocess.Popen(
        ["sleep", "60"], env={"PATH": "/bin:/usr/bin", cluster_processes.CLUSTER_VARIABLE: "here"}, cwd="/"
    )
    placed = subprocess.Popen(["sleep", "60"], env={"PATH": "/bin:/usr/bin"}, cwd=tmp_path)
    try:
        assert set(cluster_processes.find_cluster_processes("here", tmp_path)) == {marked.pid, placed.pid}
    finally:
        for process in (marked, placed):
            process.kill()
            process.wait()
    assert cluster_processes.find_cluster_processes("here", tmp_path) == {}


def test_remaining_processes_in_a_sandbox_are_found_by_their_mounts(tmp_path: Path) -> None:
    argv = ["unshare", "--mount", "bash", "-c", f"mount --bind {tmp_path} /mnt && cd / && sleep 60 & wait"]
    if subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode != 0:
        argv = ["unshare", "--map-root-user", *argv[1:]]
    hidden = subprocess.Popen(argv, env={"PATH": "/bin:/usr/bin"}, cwd="/", start_new_session=True)
    try:
        end = time.monotonic() + 10
        while not cluster_processes.find_cluster_processes("here", tmp_path) and time.monotonic() < end:
            time.sleep(0.02)
        assert hidden.pid in cluster_processes.find_cluster_processes("here", tmp_path)
    finally:
        os.killpg(hidden.pid, signal.SIGKILL)
        hidden.wait()
