"""The runner of proofs: what it selects, what it counts as failure, and what it writes."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from bench.prove import __main__ as runner
from bench.prove import registry, remains
from bench.prove.figure import Figure, NotHeld, require
from bench.prove.registry import Claim

pytestmark = pytest.mark.timing

CLAIM = Claim("core", 1)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    return tmp_path


def _claim_proves(monkeypatch: pytest.MonkeyPatch, outcome: Figure | Exception) -> None:
    async def prove(quick: bool) -> Figure:  # noqa: FBT001 - the signature of every proof
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(Claim, "load", lambda _claim: ("A claim.", prove))


async def test_a_full_run_leaves_its_figure(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _claim_proves(monkeypatch, Figure(text="7 of 7", holds=True, details={"lost": 0}))
    assert await runner._prove([CLAIM], quick=False)
    record = json.loads((results / "core-1.json").read_text())
    assert (record["figure"], record["holds"], record["details"]) == ("7 of 7", True, {"lost": 0})


async def test_a_quick_run_leaves_nothing(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _claim_proves(monkeypatch, Figure(text="1 of 1", holds=True))
    assert await runner._prove([CLAIM], quick=True)
    assert not _names(results)


@pytest.mark.parametrize("outcome", [Figure(text="6 of 7", holds=False), NotHeld("lost one"), RuntimeError("broke")])
async def test_what_does_not_hold_fails(
    results: Path, monkeypatch: pytest.MonkeyPatch, outcome: Figure | Exception
) -> None:
    _claim_proves(monkeypatch, outcome)
    assert not await runner._prove([CLAIM], quick=True)


def _names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def test_selection_is_by_key_group_or_all(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [Claim("core", 1), Claim("core", 10), Claim("door", 1)]
    monkeypatch.setattr(registry, "claims", lambda: known)
    assert registry.select("core-1") == known[:1]
    assert registry.select("core") == known[:2]
    assert registry.select("all") == known
    assert registry.select("core-2") == []


def test_require_raises() -> None:
    with pytest.raises(NotHeld, match="lost one"):
        require(holds=False, otherwise="lost one")


def test_remains_are_found_by_mark_and_by_place(tmp_path: Path) -> None:
    marked = subprocess.Popen(["sleep", "60"], env={"PATH": "/bin:/usr/bin", remains.MARK: "here"}, cwd="/")
    placed = subprocess.Popen(["sleep", "60"], env={"PATH": "/bin:/usr/bin"}, cwd=tmp_path)
    try:
        assert set(remains.of("here", tmp_path)) == {marked.pid, placed.pid}
    finally:
        for process in (marked, placed):
            process.kill()
            process.wait()
    assert remains.of("here", tmp_path) == {}


def test_remains_in_a_sandbox_are_found_by_what_it_shows_them(tmp_path: Path) -> None:
    argv = ["unshare", "--mount", "bash", "-c", f"mount --bind {tmp_path} /mnt && cd / && sleep 60 & wait"]
    if subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode != 0:
        argv = ["unshare", "--map-root-user", *argv[1:]]
    hidden = subprocess.Popen(argv, env={"PATH": "/bin:/usr/bin"}, cwd="/", start_new_session=True)
    try:
        end = time.monotonic() + 10
        while not remains.of("here", tmp_path) and time.monotonic() < end:
            time.sleep(0.02)
        assert hidden.pid in remains.of("here", tmp_path)
    finally:
        os.killpg(hidden.pid, signal.SIGKILL)
        hidden.wait()
