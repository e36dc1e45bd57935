"""Project instructions are read from a commit of a real repository: never from a working tree, never through a link."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from footplate.domain import brought
from footplate.domain.addresses import Reach
from footplate.domain.brought import Brought, LeftOut
from footplate.domain.projects import SessionProject, Trust
from footplate.store.objects import Objects
from footplate.trees import bringing
from footplate.trees.git import Git
from footplate.trees.keeping import Keeper
from footplate.trees.mirrors import Mirrors
from footplate.trees.sessions import SessionTrees

LINK = "is a link, which is not followed"


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._git("init", "-q", "-b", "main")

    def put(self, name: str, content: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def link(self, name: str, target: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def commit(self) -> str:
        self._git("add", "-A", "-f")
        self._git("-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "One")
        return self._git("rev-parse", "HEAD").strip()

    async def bring(self, commit: str, trust: Trust = Trust.ALL) -> Brought:
        return await bringing.read(Git(git_dir=self.folder / ".git"), commit, trust)

    def _git(self, *argv: str) -> str:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return subprocess.run(
            ["git", *argv], cwd=self.folder, env=clean, check=True, capture_output=True, text=True
        ).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


async def test_each_trust_reads_what_is_its_own(repository: Repository) -> None:
    for name in (
        "CLAUDE.md",
        "src/CLAUDE.md",
        ".claude/rules/a.md",
        ".claude/skills/x/SKILL.md",
        ".claude/commands/c.md",
    ):
        repository.put(name, name)
    for name in (".claude/settings.json", ".mcp.json", ".claude/hooks/h.sh", ".claude/agents/a.md", "main.py"):
        repository.put(name, name)
    commit = repository.commit()
    words = {"CLAUDE.md", "src/CLAUDE.md", ".claude/rules/a.md", ".claude/skills/x/SKILL.md", ".claude/commands/c.md"}

    nothing = await repository.bring(commit, Trust.NOTHING)
    assert nothing == Brought(commit=commit)

    instructions = await repository.bring(commit, Trust.INSTRUCTIONS)
    assert set(instructions.files) == words
    assert instructions.files["src/CLAUDE.md"] == b"src/CLAUDE.md"
    assert next(iter(instructions.files)) == "CLAUDE.md"
    assert {left.path for left in instructions.left_out} == {
        ".claude/settings.json",
        ".mcp.json",
        ".claude/agents/a.md",
    }

    everything = await repository.bring(commit, Trust.ALL)
    assert set(everything.files) == words | {".claude/settings.json", ".mcp.json", ".claude/hooks/h.sh"}
    assert [left.path for left in everything.left_out] == [".claude/agents/a.md"]


async def test_the_working_tree_and_later_commits_do_not_count(repository: Repository) -> None:
    repository.put("CLAUDE.md", "Of the base.")
    base = repository.commit()
    repository.put("CLAUDE.md", "Of the agent.")
    repository.put(".claude/rules/own.md", "Of the agent.")
    repository.commit()
    repository.put("CLAUDE.md", "Not even committed.")
    found = await repository.bring(base)
    assert found.files == {"CLAUDE.md": b"Of the base."}
    assert found.left_out == ()


async def test_imports_are_of_the_same_commit(repository: Repository) -> None:
    repository.put("CLAUDE.md", "@docs/a.md and @gone.md and @/etc/hostname and @docs")
    repository.put("docs/a.md", "@b.md and @../CLAUDE.md")
    repository.put("docs/b.md", "The end.")
    found = await repository.bring(repository.commit(), Trust.INSTRUCTIONS)
    assert [*found.files] == ["CLAUDE.md", "docs/a.md", "docs/b.md"]


async def test_imports_end(repository: Repository) -> None:
    for number in range(10):
        repository.put(f"{number}.md" if number else "CLAUDE.md", f"@{number + 1}.md")
    found = await repository.bring(repository.commit(), Trust.INSTRUCTIONS)
    assert len(found.files) == 1 + brought.IMPORTS_DEEP


async def test_no_link_is_followed(repository: Repository, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.md").write_text("A secret.")
    repository.link("CLAUDE.md", str(outside / "secret.md"))
    repository.link(".claude", str(outside))
    repository.put("src/CLAUDE.md", "@../linked.md @../folder/secret.md")
    repository.link("linked.md", str(outside / "secret.md"))
    repository.link("folder", str(outside))
    found = await repository.bring(repository.commit())
    assert [*found.files] == ["src/CLAUDE.md"]
    assert set(found.left_out) == {LeftOut("CLAUDE.md", LINK), LeftOut(".claude", LINK), LeftOut("linked.md", LINK)}


async def test_a_linked_folder_below_is_told(repository: Repository) -> None:
    repository.link(".claude/hooks", "/tmp")
    found = await repository.bring(repository.commit())
    assert found.left_out == (LeftOut(".claude/hooks", LINK),)


async def test_bounds(repository: Repository) -> None:
    repository.put("CLAUDE.md", "x" * (brought.LONGEST_FILE + 1))
    repository.put("binary/CLAUDE.md", b"\xff\x00")
    for number in range(brought.MOST_FILES + 5):
        repository.put(f"{number:03}/CLAUDE.md", "x")
    found = await repository.bring(repository.commit(), Trust.INSTRUCTIONS)
    reasons = {left.path: left.reason for left in found.left_out}
    assert "longer" in reasons["CLAUDE.md"]
    assert "more than 200 files" in reasons["204/CLAUDE.md"]
    assert len(found.files) <= brought.MOST_FILES


async def test_bound_of_all_together(repository: Repository) -> None:
    for number in range(10):
        repository.put(f"{number}/CLAUDE.md", "x" * brought.LONGEST_FILE)
    found = await repository.bring(repository.commit(), Trust.INSTRUCTIONS)
    assert sum(map(len, found.files.values())) == brought.MOST_BYTES
    assert len(found.left_out) == 2


async def test_names_that_want_to_be_options_or_patterns(repository: Repository) -> None:
    repository.put("CLAUDE.md", "@--help @:(top)x.md @*.md")
    repository.put("other.md", "Not named.")
    found = await repository.bring(repository.commit(), Trust.INSTRUCTIONS)
    assert [*found.files] == ["CLAUDE.md"]


async def test_a_session_is_given_its_base_as_far_as_it_is_trusted(tmp_path: Path) -> None:
    user = Repository(tmp_path / "projects" / "app")
    user.put("CLAUDE.md", "Of the base.")
    base = user.commit()
    (tmp_path / "data").mkdir()
    mirrors = Mirrors(tmp_path / "data", root=str(tmp_path / "projects"), address_policy=Reach(), seconds=60)
    trees = SessionTrees(tmp_path / "data", mirrors, Keeper(Objects.open(None, tmp_path)), seconds=60)
    project = SessionProject(id="proj_1", name="app", path="app", trust=Trust.INSTRUCTIONS)
    assert await trees.load_instructions("default", project) == Brought(), "no turn has begun"
    project = replace(project, base=await trees.resolve_base("default", project))
    user.put("CLAUDE.md", "Later.")
    user.commit()
    for _ in range(2):
        found = await trees.load_instructions("default", project)
        assert (found.commit, found.files) == (base, {"CLAUDE.md": b"Of the base."})
    assert await trees.load_instructions("default", replace(project, trust=Trust.NOTHING)) == Brought()
