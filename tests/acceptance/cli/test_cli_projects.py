"""`run --project` and the delivery of its work, in a user's repositories on the machine of `footplate dev`."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from tests.acceptance.cli.cli_cell import Cell, fits
from tests.acceptance.cli.terminal import Terminal
from tests.acceptance.cli.test_cli_terminal import COLOUR

from footplate.client import AsyncFootplate

pytestmark = pytest.mark.timing


def git(at: Path, *argv: str) -> str:
    command = ["git", "-c", "user.name=User", "-c", "user.email=user@example.com", "-C", str(at), *argv]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    return subprocess.run(command, check=True, capture_output=True, env=environment).stdout.decode().strip()


def repository(at: Path) -> Path:
    (at / "packages" / "website").mkdir(parents=True)
    (at / "packages" / "website" / "file").write_text(f"{at.name}\n")
    git(at, "init", "-q", "-b", "main")
    git(at, "add", "-A")
    git(at, "commit", "-qm", "first")
    return at


async def state_of(client: AsyncFootplate) -> tuple[list[str], list[str]]:
    sessions = [session.id async for session in client.sessions.list(limit=100)]
    return sessions, [project.id async for project in client.projects.list(limit=100)]


async def test_a_session_of_a_subdirectory_is_applied_to_its_repository_only(
    cell: Cell, client: AsyncFootplate
) -> None:
    """The session starts in the subdirectory, with the uncommitted changes if requested. A session of another
    repository is neither the default there nor accepted.
    """
    one, other = [await asyncio.to_thread(repository, cell.home / name) for name in ("one", "other")]
    website = one / "packages" / "website"
    done = await cell.run("run", "--project", str(website), "[[script:here]]")
    assert done.code == 0, done.err
    (website / "file").write_text("changed\n")
    warned = await cell.run("run", "--project", str(website), "[[script:here]]")
    assert "1 uncommitted file is not in the session: packages/website/file." in warned.err
    included = await cell.run("run", "--project", str(website), "--include-uncommitted", "--json", "[[script:here]]")
    session = await client.sessions.retrieve(fits("run", included.out)["session_id"])
    (base,) = session.bases.values()
    assert git(one, "rev-parse", f"{base['commit']}~1") == git(one, "rev-parse", "HEAD")
    assert (included.err, session.context["subdirectory"]) == ("", "packages/website")
    assert not list(one.rglob("*/.git"))
    assert "1 file changed, +1 -0" in (await cell.run("diff", "--stat")).out

    await cell.run("run", "--project", str(other), "[[script:here]]")
    refused = await cell.run("apply", session.id, "--directory", str(other))
    assert (refused.code, "does not have the commit" in refused.err, session.id in refused.err) == (1, True, True)
    assert git(other, "status", "--porcelain") == ""
    applied = await cell.run("apply", "--directory", str(website))
    assert (applied.code, f"Session {session.id}: [[script:here]]" in applied.err) == (0, True), applied.err
    assert (website / "here.txt").read_text().endswith("/packages/website\n")
    assert git(one, "status", "--porcelain").split() == [
        "M",
        "packages/website/file",
        "??",
        "packages/website/here.txt",
    ]

    checked_out = await cell.run("merge")
    assert (checked_out.code, "footplate merge --into NEW-BRANCH" in checked_out.err) == (1, True)
    merged = await cell.run("merge", "--into", "new")
    assert (merged.code, merged.err.startswith("Created the branch new at ")) == (0, True), merged.err
    git(other, "merge", "-q", "new")
    assert (other / "here.txt").is_file()


async def test_a_project_is_found_by_its_name(cell: Cell, client: AsyncFootplate) -> None:
    user = await asyncio.to_thread(repository, cell.home / "by-name")
    created = await cell.run("projects", "create", str(user), "--name", "site")
    assert created.code == 0, created.err
    done = await cell.run("run", "--project", "site", "--json", "[[script:here]]")
    session = await client.sessions.retrieve(fits("run", done.out)["session_id"])
    assert [*session.project_ids] == [created.out.strip()]
    unknown = await cell.run("run", "--project", "no-such-site", "[[script:here]]")
    assert (unknown.code, "no-such-site is not a directory." in unknown.err) == (1, True)


async def test_a_directory_that_cannot_be_used_creates_nothing(cell: Cell, client: AsyncFootplate) -> None:
    plain = cell.home / "plain"
    plain.mkdir()
    (plain / "file").write_text("x")
    before = await state_of(client)
    for command in (["run", "Say hello", "--project"], ["projects", "create"]):
        done = await cell.run(*command, str(plain))
        assert (done.code, f"{plain} contains files but is not in a git repository." in done.err) == (1, True)
    assert (await cell.run("run", "--include-uncommitted", "Say hello")).code == 2
    assert await state_of(client) == before
    assert [path.name for path in plain.iterdir()] == ["file"]


async def test_a_diff_on_a_terminal_is_coloured_and_paged(cell: Cell) -> None:
    user = await asyncio.to_thread(repository, cell.home / "coloured")
    assert (await cell.run("run", "--project", str(user), "[[script:here]]")).code == 0
    paged, plain = Terminal(80), Terminal(80)
    assert await paged.run(cell, "diff", PAGER="sed 's/^/paged: /'") == 0
    assert "paged: \x1b[1mdiff --git a/here.txt b/here.txt" in paged.text
    assert COLOUR.search(paged.text)
    assert await plain.run(cell, "diff", "--no-pager", PAGER="false", NO_COLOR="1") == 0
    assert "diff --git a/here.txt b/here.txt" in plain.text
    assert not COLOUR.search(plain.text)
    assert (await cell.run("diff")).out.startswith("diff --git a/here.txt b/here.txt\n")
