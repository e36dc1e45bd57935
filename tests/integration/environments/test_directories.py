"""The working directory of a session: its own, or the one that it names if that is allowed."""

import json
from pathlib import Path

import pytest

from footplate.domain.errors import InvalidRequest
from footplate.domain.named_directories import NamedRoots
from footplate.environments.directories import working_directory

ANYWHERE = NamedRoots({"org": ["/"]})


def _variables(directory: object) -> dict[str, str]:
    return {"FOOTPLATE_CONTEXT": json.dumps({"directory": directory})}


def test_its_own_is_made(tmp_path: Path) -> None:
    own = tmp_path / "organisation" / "session"
    assert working_directory(own, "org", {"FOOTPLATE_CONTEXT": "{}"}, ANYWHERE) == own
    assert own.is_dir()


def test_a_named_one_counts_only_where_it_is_allowed(tmp_path: Path) -> None:
    own, named = tmp_path / "own", tmp_path / "named"
    named.mkdir()
    assert working_directory(own, "org", _variables(str(named)), ANYWHERE) == named
    for off in (None, NamedRoots({})):
        assert working_directory(own, "org", _variables(str(named)), off) == own
    assert own.is_dir()
    with pytest.raises(InvalidRequest, match="the operator assigned"):
        working_directory(own, "another", _variables(str(named)), ANYWHERE)


@pytest.mark.parametrize("named", ["relative", "/no/such/directory"])
def test_one_that_is_not_there_is_refused(tmp_path: Path, named: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a directory") as caught:
        working_directory(tmp_path / "own", "org", _variables(named), ANYWHERE)
    assert caught.value.help_text


def test_a_link_is_judged_by_where_it_leads(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    for directory in (root / "repo" / ".git" / "hooks", root / "real", tmp_path / "elsewhere", home / ".ssh"):
        directory.mkdir(parents=True)
    named = NamedRoots({"org": [str(root), str(home)]}, homes=[str(home)])
    for name, target in {
        "away": tmp_path / "elsewhere",
        "hooks": root / "repo" / ".git" / "hooks",
        "keys": home / ".ssh",
        "home": home,
    }.items():
        (root / name).symlink_to(target)
        with pytest.raises(InvalidRequest, match="cannot be used"):
            working_directory(tmp_path / "own", "org", _variables(str(root / name)), named)
    (root / "fine").symlink_to(root / "real")
    assert working_directory(tmp_path / "own", "org", _variables(str(root / "fine")), named) == root / "real"


@pytest.mark.parametrize("below", ["", "hooks"])
def test_a_repository_s_own_files_are_refused_by_whatever_name(tmp_path: Path, below: str) -> None:
    bare = tmp_path / "app.store"
    for name in ("objects", "refs", "hooks"):
        (bare / name).mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    with pytest.raises(InvalidRequest, match="inside a git directory"):
        working_directory(tmp_path / "own", "org", _variables(str(bare / below)), ANYWHERE)
