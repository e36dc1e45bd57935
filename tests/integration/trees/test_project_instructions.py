"""Project instructions are read from a commit of a real repository: never from a working tree, never through a link."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.projects import project_instructions
from footplate.domain.projects.project import SessionProject, Trust
from footplate.domain.projects.project_instructions import ProjectInstructions, SkippedFile
from footplate.store.object_store import Objects
from footplate.trees.git import Git
from footplate.trees.projects import project_instructions as instruction_reader
from footplate.trees.projects.mirrors import Mirrors
from footplate.trees.session_trees import SessionTrees
from footplate.trees.snapshots.upload import SnapshotUploader

LINK = "is a symbolic link, which is not followed"


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

    async def load_instructions(self, commit: str, trust: Trust = Trust.ALL) -> ProjectInstructions:
        return await instruction_reader.read_instructions(Git(git_dir=self.folder / ".git"), commit, trust)

    def _git(self, *argv: str) -> str:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return subprocess.run(
            ["git", *argv], cwd=self.folder, env=clean, check=True, capture_output=True, text=True
        ).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


async def test_each_trust_level_reads_its_own_files(repository: Repository) -> None:
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
    expected = {
        "CLAUDE.md",
        "src/CLAUDE.md",
        ".claude/rules/a.md",
        ".claude/skills/x/SKILL.md",
        ".claude/commands/c.md",
        ".claude/agents/a.md",
    }

    nothing = await repository.load_instructions(commit, Trust.NOTHING)
    assert nothing == ProjectInstructions(commit=commit)

    instructions = await repository.load_instructions(commit, Trust.INSTRUCTIONS)
    assert set(instructions.files) == expected
    assert instructions.files["src/CLAUDE.md"] == b"src/CLAUDE.md"
    assert next(iter(instructions.files)) == "CLAUDE.md"
    assert {skipped.path for skipped in instructions.skipped} == {
        ".claude/settings.json",
        ".mcp.json",
    }

    everything = await repository.load_instructions(commit, Trust.ALL)
    assert set(everything.files) == expected | {".claude/settings.json", ".mcp.json", ".claude/hooks/h.sh"}
    assert everything.skipped == ()


async def test_the_working_tree_and_later_commits_are_ignored(repository: Repository) -> None:
    repository.put("CLAUDE.md", "Of the base.")
    base = repository.commit()
    repository.put("CLAUDE.md", "Of the agent.")
    repository.put(".claude/rules/own.md", "Of the agent.")
    repository.commit()
    repository.put("CLAUDE.md", "Not even committed.")
    found = await repository.load_instructions(base)
    assert found.files == {"CLAUDE.md": b"Of the base."}
    assert found.skipped == ()


async def test_imports_are_read_from_the_same_commit(repository: Repository) -> None:
    repository.put("CLAUDE.md", "@docs/a.md and @gone.md and @/etc/hostname and @docs")
    repository.put("docs/a.md", "@b.md and @../CLAUDE.md")
    repository.put("docs/b.md", "The end.")
    found = await repository.load_instructions(repository.commit(), Trust.INSTRUCTIONS)
    assert [*found.files] == ["CLAUDE.md", "docs/a.md", "docs/b.md"]


async def test_the_depth_of_imports_is_limited(repository: Repository) -> None:
    for number in range(10):
        repository.put(f"{number}.md" if number else "CLAUDE.md", f"@{number + 1}.md")
    found = await repository.load_instructions(repository.commit(), Trust.INSTRUCTIONS)
    assert len(found.files) == 1 + project_instructions.MAX_IMPORT_DEPTH


async def test_no_link_is_followed(repository: Repository, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.md").write_text("A secret.")
    repository.link("CLAUDE.md", str(outside / "secret.md"))
    repository.link(".claude", str(outside))
    repository.put("src/CLAUDE.md", "@../linked.md @../folder/secret.md")
    repository.link("linked.md", str(outside / "secret.md"))
    repository.link("folder", str(outside))
    found = await repository.load_instructions(repository.commit())
    assert [*found.files] == ["src/CLAUDE.md"]
    assert set(found.skipped) == {
        SkippedFile("CLAUDE.md", LINK),
        SkippedFile(".claude", LINK),
        SkippedFile("linked.md", LINK),
    }


async def test_a_linked_directory_below_is_reported(repository: Repository) -> None:
    repository.link(".claude/hooks", "/tmp")
    found = await repository.load_instructions(repository.commit())
    assert found.skipped == (SkippedFile(".claude/hooks", LINK),)


async def test_size_and_number_of_files_are_limited(repository: Repository) -> None:
    repository.put("CLAUDE.md", "x" * (project_instructions.MAX_FILE_BYTES + 1))
    repository.put("binary/CLAUDE.md", b"\xff\x00")
    for number in range(project_instructions.MAX_FILES + 5):
        repository.put(f"{number:03}/CLAUDE.md", "x")
    found = await repository.load_instructions(repository.commit(), Trust.INSTRUCTIONS)
    reasons = {skipped.path: skipped.reason for skipped in found.skipped}
    assert "larger" in reasons["CLAUDE.md"]
    assert "exceeds the limit of 200 files" in reasons["204/CLAUDE.md"]
    assert len(found.files) <= project_instructions.MAX_FILES


async def test_the_total_size_is_limited(repository: Repository) -> None:
    for number in range(10):
        repository.put(f"{number}/CLAUDE.md", "x" * project_instructions.MAX_FILE_BYTES)
    found = await repository.load_instructions(repository.commit(), Trust.INSTRUCTIONS)
    assert sum(map(len, found.files.values())) == project_instructions.MAX_TOTAL_BYTES
    assert len(found.skipped) == 2


async def test_imports_that_look_like_options_or_patterns_are_ignored(repository: Repository) -> None:
    repository.put("CLAUDE.md", "@--help @:(top)x.md @*.md")
    repository.put("other.md", "Not named.")
    found = await repository.load_instructions(repository.commit(), Trust.INSTRUCTIONS)
    assert [*found.files] == ["CLAUDE.md"]


async def test_a_session_receives_the_instructions_of_its_base_as_far_as_trusted(tmp_path: Path) -> None:
    user = Repository(tmp_path / "projects" / "app")
    user.put("CLAUDE.md", "Of the base.")
    base = user.commit()
    (tmp_path / "data").mkdir()
    mirrors = Mirrors(tmp_path / "data", root=str(tmp_path / "projects"), address_policy=AddressPolicy(), seconds=60)
    trees = SessionTrees(tmp_path / "data", mirrors, SnapshotUploader(Objects.open(None, tmp_path)), seconds=60)
    project = SessionProject(id="proj_1", name="app", path="app", trust=Trust.INSTRUCTIONS)
    assert await trees.load_instructions("default", project) == ProjectInstructions(), "no turn has begun"
    project = replace(project, base=await trees.resolve_base("default", project))
    user.put("CLAUDE.md", "Later.")
    user.commit()
    for _ in range(2):
        found = await trees.load_instructions("default", project)
        assert (found.commit, found.files) == (base, {"CLAUDE.md": b"Of the base."})
    assert await trees.load_instructions("default", replace(project, trust=Trust.NOTHING)) == ProjectInstructions()
