"""A session's changes are applied to the user's own checkout by a real git: all of them or none, with the reason."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from footplate.cli.actions.apply_to_checkout import PatchConflict, UserCheckout
from footplate.cli.actions.checkout_match import CheckoutMatcher
from footplate.client import ClientError, Session

LINES = "".join(f"line {number}\n" for number in range(1, 31))


def git(directory: Path, *argv: str) -> str:
    identity = ["-c", "user.name=User", "-c", "user.email=user@example.com"]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(directory), *identity, *argv]
    return subprocess.run(command, check=True, capture_output=True, env=environment).stdout.decode().strip()


@pytest.fixture
def user(tmp_path: Path) -> Path:
    directory = tmp_path / "app"
    directory.mkdir()
    git(directory, "init", "-q", "-b", "main")
    (directory / "text").write_text(LINES)
    (directory / "gone").write_text("gone\n")
    (directory / "data").write_bytes(bytes(range(256)))
    git(directory, "add", "-A")
    git(directory, "commit", "-qm", "first")
    return directory


@pytest.fixture
def patch(tmp_path: Path, user: Path) -> Path:
    """A session's patch with a changed, a new, a deleted and a binary file."""
    session = tmp_path / "session"
    git(tmp_path, "clone", "-q", str(user), str(session))
    (session / "text").write_text(LINES.replace("line 3\n", "line three\n"))
    (session / "new").write_text("new\n")
    (session / "gone").unlink()
    (session / "data").write_bytes(bytes(reversed(range(256))))
    git(session, "add", "-A")
    file = tmp_path / "patch"
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    command = ["git", "-C", str(session), "diff", "--cached", "--binary", "--full-index"]
    file.write_bytes(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)
    return file


def hash_files(directory: Path) -> dict[str, str]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_changes_are_applied_to_the_files_only(user: Path, patch: Path) -> None:
    (user / "beneath").mkdir()
    assert UserCheckout.find(user / "beneath").apply_patch(patch, ["gone"])
    assert (user / "text").read_text() == LINES.replace("line 3\n", "line three\n")
    assert (user / "new").read_text() == "new\n"
    assert not (user / "gone").exists()
    assert (user / "data").read_bytes() == bytes(reversed(range(256)))
    assert git(user, "diff", "--cached") == ""
    assert git(user, "log", "--format=%s") == "first"


def test_the_users_own_changes_stay(user: Path, patch: Path) -> None:
    """Near the session's changes, staged and unstaged, so that a plain patch does not apply."""
    (user / "text").write_text(LINES.replace("line 5\n", "mine\n").replace("line 20\n", "staged\n"))
    git(user, "add", "text")
    (user / "text").write_text((user / "text").read_text().replace("line 28\n", "not staged\n"))
    (user / "untracked").write_text("mine\n")
    staged = git(user, "diff", "--cached")
    objects = hash_files(user / ".git" / "objects")
    assert UserCheckout.find(user).apply_patch(patch, ["gone"])
    text = (user / "text").read_text()
    for line in ("line three", "mine", "staged", "not staged"):
        assert f"{line}\n" in text
    assert (user / "new").exists()
    assert git(user, "diff", "--cached") == staged
    assert hash_files(user / ".git" / "objects") == objects


def test_changes_that_are_already_present_are_not_applied_again(user: Path, patch: Path) -> None:
    git(user, "rm", "-q", "gone")
    (user / "new").write_text("new\n")
    git(user, "add", "-A")
    (user / "text").write_text(LINES.replace("line 3\n", "line three\n"))
    (user / "data").write_bytes(bytes(reversed(range(256))))
    git(user, "commit", "-qam", "by hand")
    assert not UserCheckout.find(user).apply_patch(patch, ["gone"])
    assert git(user, "status", "--porcelain") == ""


def test_applying_again_adds_only_missing_changes(user: Path, patch: Path) -> None:
    """Applied changes that are not committed: a second run does nothing, and a later one adds what is missing."""
    (user / ".gitignore").write_text("new\n")
    git(user, "add", "-A")
    git(user, "commit", "-qm", "ignored")
    checkout = UserCheckout.find(user)
    assert checkout.apply_patch(patch, ["gone"])
    before = hash_files(user)
    assert not checkout.apply_patch(patch, ["gone"])
    assert hash_files(user) == before
    (user / "text").write_text(LINES)
    assert checkout.apply_patch(patch, ["gone"])
    assert {**hash_files(user), ".git/index": ""} == {**before, ".git/index": ""}


def test_an_error_while_git_writes_changes_nothing(user: Path, patch: Path) -> None:
    """By then git has removed files that it does not write again, including the user's own changes."""
    (user / "new").mkdir()
    (user / "new" / "mine").write_text("mine\n")
    (user / "text").write_text(LINES.replace("line 28\n", "mine\n"))
    (user / "gone").chmod(0o755)
    before = hash_files(user)
    with pytest.raises(PatchConflict, match="new: the session added it, and a directory with this name exists here"):
        UserCheckout.find(user).apply_patch(patch, ["gone"])
    assert hash_files(user) == before
    assert (user / "gone").stat().st_mode & 0o777 == 0o755


def test_a_file_in_place_of_a_directory_is_reported(user: Path, tmp_path: Path) -> None:
    (tmp_path / "patch").write_text(
        "diff --git a/a/b/c b/a/b/c\nnew file mode 100644\n--- /dev/null\n+++ b/a/b/c\n@@ -0,0 +1 @@\n+c\n"
        "diff --git a/file/new b/file/new\nnew file mode 100644\n--- /dev/null\n+++ b/file/new\n@@ -0,0 +1 @@\n+n\n"
        "diff --git a/gone b/renamed\nsimilarity index 100%\nrename from gone\nrename to renamed\n"
    )
    (user / "file").write_text("mine\n")
    before = hash_files(user)
    with pytest.raises(PatchConflict, match="file/new: the session added it, and its parent directory is a file here"):
        UserCheckout.find(user).apply_patch(tmp_path / "patch")
    assert hash_files(user) == before
    assert not (user / "a").exists()


def test_a_conflict_is_explained_and_changes_nothing(user: Path, patch: Path) -> None:
    (user / "text").write_text(LINES.replace("line 3\n", "line drei\n"))
    git(user, "commit", "-qam", "german")
    before = hash_files(user)
    with pytest.raises(PatchConflict) as caught:
        UserCheckout.find(user).apply_patch(patch, ["gone"])
    assert "text: you and the session changed the same lines" in caught.value.message
    assert "<<<<" not in caught.value.message
    assert "footplate export --branch" in caught.value.help
    assert "stash" not in caught.value.help
    assert hash_files(user) == before


def test_the_advice_for_uncommitted_conflicts_resolves_them(user: Path, patch: Path) -> None:
    (user / "text").write_text(LINES.replace("line 3\n", "line drei\n"))
    with pytest.raises(PatchConflict) as caught:
        UserCheckout.find(user).apply_patch(patch, ["gone"])
    assert "git stash" in caught.value.help
    git(user, "stash", "-q")
    assert UserCheckout.find(user).apply_patch(patch, ["gone"])


def test_a_file_that_is_in_the_way_is_named(user: Path, patch: Path) -> None:
    (user / "new").write_text("mine\n")
    before = hash_files(user)
    with pytest.raises(
        PatchConflict, match="new: the session added it, and an uncommitted file with this name exists here"
    ) as caught:
        UserCheckout.find(user).apply_patch(patch, ["gone"])
    assert "text" not in caught.value.message.splitlines()[1]
    assert "Move or delete" in caught.value.help
    assert hash_files(user) == before


def test_an_unrelated_repository_is_reported(tmp_path: Path, patch: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "text").write_text("something else\n")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "x")
    before = hash_files(other)
    with pytest.raises(PatchConflict, match=r"does not exist here|does not have"):
        UserCheckout.find(other).apply_patch(patch, ["gone"])
    assert hash_files(other) == before


def test_a_session_fits_only_a_repository_that_it_started_from(user: Path) -> None:
    """Without a first commit, only the directory of its project."""
    based, unbased = (
        Session.model_construct(id="sesn_1", title="Work", project_ids=["proj_1"], bases={"proj_1": {"commit": commit}})
        for commit in (git(user, "rev-parse", "HEAD"), None)
    )
    lost = based.model_copy(update={"bases": {"proj_1": {"commit": "0" * 40}}})
    here, elsewhere = (CheckoutMatcher(UserCheckout(user), project_id) for project_id in ("proj_1", None))
    here.check_base(based, "proj_1")
    elsewhere.check_base(based, "proj_1")
    here.check_base(unbased, "proj_1")
    for matcher, session in ((here, lost), (elsewhere, lost), (elsewhere, unbased)):
        with pytest.raises(ClientError, match=r"The session is sesn_1 \(Work\)"):
            matcher.check_base(session, "proj_1")


def test_nothing_is_written_outside_the_checkout(user: Path, tmp_path: Path) -> None:
    evil = tmp_path / "evil"
    for name in ("../outside", ".git/hooks/pre-commit"):
        head = f"diff --git a/{name} b/{name}\nnew file mode 100755\n--- /dev/null\n+++ b/{name}\n"
        evil.write_text(f"{head}@@ -0,0 +1 @@\n+bad\n")
        before = hash_files(user)
        with pytest.raises(PatchConflict):
            UserCheckout.find(user).apply_patch(evil)
        assert hash_files(user) == before
    assert not (tmp_path / "outside").exists()


def test_a_missing_checkout_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="not inside a checkout"):
        UserCheckout.find(tmp_path)
    with pytest.raises(ClientError, match="does not exist"):
        UserCheckout.find(tmp_path / "missing")


@pytest.fixture
def bundle(tmp_path: Path, user: Path) -> Path:
    session = tmp_path / "session"
    git(tmp_path, "clone", "-q", str(user), str(session))
    (session / "new").write_text("new\n")
    git(session, "switch", "-q", "-c", "session")
    git(session, "add", "-A")
    git(session, "commit", "-qm", "second")
    file = tmp_path / "bundle"
    git(session, "bundle", "create", "-q", str(file), "session", "^main")
    return file


def test_a_bundle_becomes_a_branch(user: Path, bundle: Path) -> None:
    commit = UserCheckout.find(user).import_bundle(bundle, "topic", force=False)
    assert git(user, "rev-parse", "topic") == commit
    assert git(user, "log", "--format=%s", "topic") == "second\nfirst"
    assert git(user, "branch", "--show-current") == "main"
    assert UserCheckout.find(user).import_bundle(bundle, "topic", force=False) == commit


def test_a_branch_that_cannot_be_created_is_explained(user: Path, bundle: Path, tmp_path: Path) -> None:
    git(user, "commit", "-q", "--allow-empty", "-m", "other")
    git(user, "branch", "other")
    with pytest.raises(ClientError, match="has commits that the session's branch does not have"):
        UserCheckout.find(user).import_bundle(bundle, "other", force=False)
    UserCheckout.find(user).import_bundle(bundle, "other", force=True)
    with pytest.raises(ClientError, match="checked out"):
        UserCheckout.find(user).import_bundle(bundle, "main", force=True)
    with pytest.raises(ClientError, match="'no name' is not a valid branch name"):
        UserCheckout.find(user).import_bundle(bundle, "no name", force=False)
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    with pytest.raises(ClientError, match="does not have the commit"):
        UserCheckout.find(empty).import_bundle(bundle, "topic", force=False)
