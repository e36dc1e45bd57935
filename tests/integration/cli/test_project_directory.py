"""Directories for `run --project` are checked with a real git, and uncommitted changes become a commit on no branch."""

from pathlib import Path

import pytest
from tests.integration.cli.test_checkout import git, hash_files

from footplate.cli.actions.project_directory import ProjectDirectory
from footplate.client import ClientError


@pytest.fixture
def user(tmp_path: Path) -> Path:
    directory = tmp_path / "app"
    (directory / "packages" / "website").mkdir(parents=True)
    (directory / "packages" / "website" / "file").write_text("one\n")
    (directory / ".gitignore").write_text("ignored\n")
    git(directory, "init", "-q", "-b", "main")
    git(directory, "add", "-A")
    git(directory, "commit", "-qm", "first")
    return directory


def test_a_subdirectory_selects_its_repository(user: Path, tmp_path: Path) -> None:
    (user / "empty").mkdir()
    for below in ("packages/website", "empty"):
        assert ProjectDirectory.find(str(user / below)) == ProjectDirectory(user, below)
    assert ProjectDirectory.find(str(user)) == ProjectDirectory(user)
    assert ProjectDirectory(user, "packages/website").has_subdirectory("HEAD")
    assert not ProjectDirectory(user, "empty").has_subdirectory("HEAD")
    git(tmp_path, "clone", "-q", "--bare", str(user), str(tmp_path / "bare.git"))
    assert ProjectDirectory.find(str(tmp_path / "bare.git")) == ProjectDirectory(tmp_path / "bare.git")


def test_a_directory_that_cannot_be_used_is_explained(user: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    assert ProjectDirectory.find(str(plain)) == ProjectDirectory(plain)
    (plain / "file").write_text("x")
    git(user, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    refused = {
        plain: (f"{plain} contains files", f"git init {plain}"),
        tmp_path / "missing": ("is not a directory", "create the directory"),
        tmp_path / "linked": ("is a linked worktree", f"--project {user}"),
        user / ".git" / "refs": ("is inside the git directory", "directory of the repository"),
    }
    for path, (message, help_text) in refused.items():
        with pytest.raises(ClientError, match=message) as caught:
            ProjectDirectory.find(str(path))
        assert help_text in caught.value.help


def test_uncommitted_changes_become_a_commit_and_the_repository_stays_as_it_is(user: Path) -> None:
    witness = user.parent / "ran"
    for hook in ("post-index-change", "pre-commit"):
        (user / ".git" / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {witness}\n")
        (user / ".git" / "hooks" / hook).chmod(0o755)
    (user / "packages" / "website" / "file").write_text("two\n")
    (user / "staged").write_text("staged\n")
    git(user, "add", "staged")
    witness.unlink(missing_ok=True)
    (user / "staged").write_text("not staged\n")
    (user / "new").write_text("new\n")
    (user / "ignored").write_text("ignored\n")

    def state() -> object:
        files = {name: sha for name, sha in hash_files(user).items() if not name.startswith(".git/objects/")}
        return files, git(user, "for-each-ref")

    before = state()
    directory = ProjectDirectory(user)
    assert sorted(directory.list_uncommitted()) == ["new", "packages/website/file", "staged"]
    commit = directory.commit_uncommitted()
    assert state() == before
    assert not witness.exists()
    assert git(user, "rev-parse", f"{commit}~1") == git(user, "rev-parse", "HEAD")
    assert git(user, "show", f"{commit}:staged") == "not staged"
    listed = git(user, "ls-tree", "-r", "--name-only", commit).splitlines()
    assert listed == [".gitignore", "new", "packages/website/file", "staged"]


def test_uncommitted_files_of_a_new_repository_become_its_first_commit(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x\n")
    git(tmp_path, "init", "-q")
    directory = ProjectDirectory.find(str(tmp_path))
    assert directory.list_uncommitted() == ["file"]
    assert git(tmp_path, "log", "--format=%s", directory.commit_uncommitted()) == "Uncommitted changes"
