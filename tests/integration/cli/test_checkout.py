"""A session's changes are applied to the user's own checkout by a real git: all of them or none, with the reason."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from footplate.cli.checkout import Checkout, DoesNotFit
from footplate.client import ClientError

LINES = "".join(f"line {number}\n" for number in range(1, 31))


def git(at: Path, *argv: str) -> str:
    identity = ["-c", "user.name=User", "-c", "user.email=user@example.com"]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(at), *identity, *argv]
    return subprocess.run(command, check=True, capture_output=True, env=environment).stdout.decode().strip()


@pytest.fixture
def user(tmp_path: Path) -> Path:
    at = tmp_path / "app"
    at.mkdir()
    git(at, "init", "-q", "-b", "main")
    (at / "text").write_text(LINES)
    (at / "gone").write_text("gone\n")
    (at / "data").write_bytes(bytes(range(256)))
    git(at, "add", "-A")
    git(at, "commit", "-qm", "first")
    return at


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


def everything(at: Path) -> dict[str, str]:
    files = (path for path in at.rglob("*") if path.is_file())
    return {str(path.relative_to(at)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_it_is_in_the_files_and_nowhere_else(user: Path, patch: Path) -> None:
    (user / "beneath").mkdir()
    assert Checkout.at(user / "beneath").apply(patch, ["gone"])
    assert (user / "text").read_text() == LINES.replace("line 3\n", "line three\n")
    assert (user / "new").read_text() == "new\n"
    assert not (user / "gone").exists()
    assert (user / "data").read_bytes() == bytes(reversed(range(256)))
    assert git(user, "diff", "--cached") == ""
    assert git(user, "log", "--format=%s") == "first"


def test_what_the_user_changed_stays(user: Path, patch: Path) -> None:
    """Near the session's changes, staged and unstaged, so that a plain patch does not apply."""
    (user / "text").write_text(LINES.replace("line 5\n", "mine\n").replace("line 20\n", "staged\n"))
    git(user, "add", "text")
    (user / "text").write_text((user / "text").read_text().replace("line 28\n", "not staged\n"))
    (user / "untracked").write_text("mine\n")
    staged = git(user, "diff", "--cached")
    objects = everything(user / ".git" / "objects")
    assert Checkout.at(user).apply(patch, ["gone"])
    text = (user / "text").read_text()
    for line in ("line three", "mine", "staged", "not staged"):
        assert f"{line}\n" in text
    assert (user / "new").exists()
    assert git(user, "diff", "--cached") == staged
    assert everything(user / ".git" / "objects") == objects


def test_twice_is_once(user: Path, patch: Path) -> None:
    git(user, "rm", "-q", "gone")
    (user / "new").write_text("new\n")
    git(user, "add", "-A")
    (user / "text").write_text(LINES.replace("line 3\n", "line three\n"))
    (user / "data").write_bytes(bytes(reversed(range(256))))
    git(user, "commit", "-qam", "by hand")
    assert not Checkout.at(user).apply(patch, ["gone"])
    assert git(user, "status", "--porcelain") == ""


def test_what_an_earlier_time_brought_is_not_in_the_way(user: Path, patch: Path) -> None:
    """Applied changes that are not committed: a second run does nothing, and a later one adds what is missing."""
    (user / ".gitignore").write_text("new\n")
    git(user, "add", "-A")
    git(user, "commit", "-qm", "ignored")
    checkout = Checkout.at(user)
    assert checkout.apply(patch, ["gone"])
    before = everything(user)
    assert not checkout.apply(patch, ["gone"])
    assert everything(user) == before
    (user / "text").write_text(LINES)
    assert checkout.apply(patch, ["gone"])
    assert {**everything(user), ".git/index": ""} == {**before, ".git/index": ""}


def test_what_git_finds_out_while_it_writes_changes_nothing_either(user: Path, patch: Path) -> None:
    """By then git has removed files that it does not write again, including the user's own changes."""
    (user / "new").mkdir()
    (user / "new" / "mine").write_text("mine\n")
    (user / "text").write_text(LINES.replace("line 28\n", "mine\n"))
    (user / "gone").chmod(0o755)
    before = everything(user)
    with pytest.raises(DoesNotFit, match="new: the session added it, and there is a directory of that name here"):
        Checkout.at(user).apply(patch, ["gone"])
    assert everything(user) == before
    assert (user / "gone").stat().st_mode & 0o777 == 0o755


def test_a_file_where_a_directory_should_be_is_told(user: Path, tmp_path: Path) -> None:
    (tmp_path / "patch").write_text(
        "diff --git a/a/b/c b/a/b/c\nnew file mode 100644\n--- /dev/null\n+++ b/a/b/c\n@@ -0,0 +1 @@\n+c\n"
        "diff --git a/file/new b/file/new\nnew file mode 100644\n--- /dev/null\n+++ b/file/new\n@@ -0,0 +1 @@\n+n\n"
        "diff --git a/gone b/renamed\nsimilarity index 100%\nrename from gone\nrename to renamed\n"
    )
    (user / "file").write_text("mine\n")
    before = everything(user)
    with pytest.raises(DoesNotFit, match="file/new: the session added it, and what should be its directory is a file"):
        Checkout.at(user).apply(tmp_path / "patch")
    assert everything(user) == before
    assert not (user / "a").exists()


def test_a_conflict_is_explained_and_changes_nothing(user: Path, patch: Path) -> None:
    (user / "text").write_text(LINES.replace("line 3\n", "line drei\n"))
    git(user, "commit", "-qam", "german")
    before = everything(user)
    with pytest.raises(DoesNotFit) as caught:
        Checkout.at(user).apply(patch, ["gone"])
    assert "text: changed here and by the session, in the same place" in caught.value.message
    assert "<<<<" not in caught.value.message
    assert "footplate export --branch" in caught.value.help
    assert everything(user) == before


def test_a_file_that_is_in_the_way_is_named(user: Path, patch: Path) -> None:
    (user / "new").write_text("mine\n")
    before = everything(user)
    with pytest.raises(DoesNotFit, match="new: the session added it, and there is one here") as caught:
        Checkout.at(user).apply(patch, ["gone"])
    assert "text" not in caught.value.message.splitlines()[1]
    assert everything(user) == before


def test_a_repository_of_something_else_is_told(tmp_path: Path, patch: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "text").write_text("something else\n")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "x")
    before = everything(other)
    with pytest.raises(DoesNotFit, match=r"does not exist here|does not have"):
        Checkout.at(other).apply(patch, ["gone"])
    assert everything(other) == before


def test_nothing_is_written_outside(user: Path, tmp_path: Path) -> None:
    evil = tmp_path / "evil"
    for name in ("../outside", ".git/hooks/pre-commit"):
        head = f"diff --git a/{name} b/{name}\nnew file mode 100755\n--- /dev/null\n+++ b/{name}\n"
        evil.write_text(f"{head}@@ -0,0 +1 @@\n+bad\n")
        before = everything(user)
        with pytest.raises(DoesNotFit):
            Checkout.at(user).apply(evil)
        assert everything(user) == before
    assert not (tmp_path / "outside").exists()


def test_no_checkout_is_told(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="not inside a checkout"):
        Checkout.at(tmp_path)
    with pytest.raises(ClientError, match="does not exist"):
        Checkout.at(tmp_path / "missing")


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
    commit = Checkout.at(user).take(bundle, "topic", force=False)
    assert git(user, "rev-parse", "topic") == commit
    assert git(user, "log", "--format=%s", "topic") == "second\nfirst"
    assert git(user, "branch", "--show-current") == "main"
    assert Checkout.at(user).take(bundle, "topic", force=False) == commit


def test_a_branch_that_cannot_be_is_explained(user: Path, bundle: Path, tmp_path: Path) -> None:
    git(user, "commit", "-q", "--allow-empty", "-m", "other")
    git(user, "branch", "other")
    with pytest.raises(ClientError, match="has commits that the session's branch does not have"):
        Checkout.at(user).take(bundle, "other", force=False)
    Checkout.at(user).take(bundle, "other", force=True)
    with pytest.raises(ClientError, match="checked out"):
        Checkout.at(user).take(bundle, "main", force=True)
    with pytest.raises(ClientError, match="'no name' is no name of a branch"):
        Checkout.at(user).take(bundle, "no name", force=False)
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    with pytest.raises(ClientError, match="does not have the commit"):
        Checkout.at(empty).take(bundle, "topic", force=False)
