"""The host's git executes no configuration of a workspace, and its failures are readable."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
import uvloop

from footplate.domain.errors import Unavailable
from footplate.trees.git import Git, GitFailed, write_attributes

pytestmark = pytest.mark.timing


def _git(*argv: str, at: Path) -> str:
    return subprocess.run(["git", "-C", str(at), *argv], check=True, capture_output=True, text=True).stdout


@pytest.fixture
async def host(tmp_path: Path) -> Git:
    """A git directory of the host beside an untrusted workspace."""
    work = tmp_path / "work"
    work.mkdir()
    git = Git(git_dir=tmp_path / "host.git", work_tree=work)
    await git.run("init", "-q")
    write_attributes(git.git_dir)
    return git


async def test_a_hostile_workspace_runs_nothing(host: Git, tmp_path: Path) -> None:
    assert host.work_tree is not None
    marker = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    program.chmod(0o755)
    work = host.work_tree
    _git("init", "-q", at=work)
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge", "diff.x.textconv", "diff.x.command"):
        _git("config", key, str(program), at=work)
    hooks = work / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "pre-commit", "post-checkout", "reference-transaction"):
        (hooks / name).symlink_to(program)
    (work / ".gitattributes").write_text("* filter=x diff=x merge=x text eol=crlf ident working-tree-encoding=UTF-16\n")
    (work / "file").write_bytes(b"one\r\n$Id$\n")
    (work / ".gitconfig").write_text(f"[core]\n\tfsmonitor = {program}\n")

    await host.run("add", "-A")
    tree = (await host.run("write-tree")).decode().strip()
    assert await host.run("cat-file", "blob", f"{tree}:file") == b"one\r\n$Id$\n"
    empty = (await host.run("mktree")).decode().strip()
    patch = await host.run("diff-tree", "-r", "-p", empty, tree)
    await host.run("diff-files", "-p")
    (work / "file").unlink()
    await host.run("checkout-index", "-a", "-f")

    assert b"+one" in patch
    assert (work / "file").read_bytes() == b"one\r\n$Id$\n"
    assert not marker.exists()
    _git("status", at=work)
    assert marker.exists(), "the trap itself is armed"


async def test_no_environment_variable_of_the_worker_is_inherited(host: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nonexistent")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    assert not any("secret" in value for value in host.build_environment().values())
    assert (await host.run("ls-files")) == b""


@pytest.mark.parametrize("url", ["ext::sh -c touch% ran", "ssh://example.com/x", "git://example.com/x", "/some/path"])
async def test_only_allowed_protocols_are_fetched(host: Git, url: str) -> None:
    with pytest.raises(GitFailed, match=r"not allowed|Unable to find remote helper"):
        await host.run("fetch", url)


async def test_a_failure_is_reported_with_its_output(host: Git) -> None:
    with pytest.raises(GitFailed, match=r"git rev-parse failed \(exit code 128\): fatal: Needed a single revision"):
        await host.run("rev-parse", "--verify", "nothing")
    assert await host.run_with_exit_code("rev-parse", "--verify", "-q", "nothing") == (1, b"")


async def test_a_stream_yields_chunks_and_raises_its_failure_at_the_end(host: Git) -> None:
    content = os.urandom(300_000)
    name = (await host.run("hash-object", "-w", "--stdin", stdin=content)).decode().strip()
    async with host.stream_output("cat-file", "blob", name, chunk_bytes=1000) as pieces:
        found = [piece async for piece in pieces]
    assert b"".join(found) == content
    assert max(map(len, found)) <= 1000
    with pytest.raises(GitFailed):
        async with host.stream_output("cat-file", "blob", "0" * 40) as pieces:
            assert [piece async for piece in pieces] == []


async def test_closing_a_stream_early_ends_git(host: Git) -> None:
    name = (await host.run("hash-object", "-w", "--stdin", stdin=bytes(5_000_000))).decode().strip()
    async with asyncio.timeout(30):
        async with host.stream_output("cat-file", "blob", name, chunk_bytes=1000) as pieces:
            await anext(pieces)
            await asyncio.sleep(0.2)  # until our side of the pipe is full as well


async def test_a_slow_command_times_out(host: Git) -> None:
    with pytest.raises(Unavailable, match="git ls-files took longer than 0 s"):
        await host.run("ls-files", seconds=0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has agents that are somebody else")
async def test_files_belong_to_the_user(host: Git, tmp_path: Path) -> None:
    name = (await host.run("hash-object", "-w", "--stdin", stdin=b"x")).decode().strip()
    await host.run("update-index", "--add", "--cacheinfo", f"100644,{name},sub/file")
    os.chmod(tmp_path, 0o700)  # noqa: PTH101
    as_agent = Git(git_dir=host.git_dir, work_tree=host.work_tree, user=(65_520, 65_520))
    await as_agent.run("checkout-index", "-a", "-u")
    assert host.work_tree is not None
    status = (host.work_tree / "sub" / "file").stat()
    assert (status.st_uid, status.st_gid) == (65_520, 65_520)
    assert await host.run("diff-files", "--name-only") == b""


def test_the_exit_code_of_git_that_ends_early_is_read_under_uvloop_too(tmp_path: Path) -> None:
    async def run_git() -> set[int]:
        git = Git(git_dir=tmp_path / "nothing")
        stdin = b"HEAD\n" * 20_000
        commands = (git.run_with_exit_code("cat-file", "--batch-check", stdin=stdin, accept=(128,)) for _ in range(30))
        return {code for code, _ in await asyncio.gather(*commands)}

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(run_git()) == {128}
