"""The working directory of a session: its own, or the one that it names if that is allowed."""

import json
from pathlib import Path

import pytest

from footplate.domain.errors import InvalidRequest
from footplate.domain.projects.allowed_directories import AllowedRoots
from footplate.environments.unsandboxed_environment import UnsandboxedEnvironment
from footplate.environments.working_directory_choice import choose_working_directory, find_subdirectory
from footplate.lease_clock import lease_clock

ANYWHERE = AllowedRoots({"org": ["/"]})


def _context_variables(directory: object) -> dict[str, str]:
    return {"FOOTPLATE_CONTEXT": json.dumps({"directory": directory})}


def test_the_sessions_own_directory_is_created(tmp_path: Path) -> None:
    own = tmp_path / "organisation" / "session"
    assert choose_working_directory(own, "org", {"FOOTPLATE_CONTEXT": "{}"}, ANYWHERE) == own
    assert own.is_dir()


def test_a_named_directory_is_used_only_if_it_is_allowed(tmp_path: Path) -> None:
    own, named = tmp_path / "own", tmp_path / "named"
    named.mkdir()
    assert choose_working_directory(own, "org", _context_variables(str(named)), ANYWHERE) == named
    for off in (None, AllowedRoots({})):
        assert choose_working_directory(own, "org", _context_variables(str(named)), off) == own
    assert own.is_dir()
    with pytest.raises(InvalidRequest, match="the operator assigned"):
        choose_working_directory(own, "another", _context_variables(str(named)), ANYWHERE)


@pytest.mark.parametrize("named", ["relative", "/no/such/directory"])
def test_a_missing_directory_is_refused(tmp_path: Path, named: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a directory") as caught:
        choose_working_directory(tmp_path / "own", "org", _context_variables(named), ANYWHERE)
    assert caught.value.help_text


def test_a_link_is_checked_by_its_target(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    for directory in (root / "repo" / ".git" / "hooks", root / "real", tmp_path / "elsewhere", home / ".ssh"):
        directory.mkdir(parents=True)
    named = AllowedRoots({"org": [str(root), str(home)]}, homes=[str(home)])
    for name, target in {
        "away": tmp_path / "elsewhere",
        "hooks": root / "repo" / ".git" / "hooks",
        "keys": home / ".ssh",
        "home": home,
    }.items():
        (root / name).symlink_to(target)
        with pytest.raises(InvalidRequest, match="cannot be used"):
            choose_working_directory(tmp_path / "own", "org", _context_variables(str(root / name)), named)
    (root / "fine").symlink_to(root / "real")
    assert (
        choose_working_directory(tmp_path / "own", "org", _context_variables(str(root / "fine")), named)
        == root / "real"
    )


@pytest.mark.parametrize("below", ["", "hooks"])
def test_a_git_directory_is_refused_under_any_name(tmp_path: Path, below: str) -> None:
    bare = tmp_path / "app.store"
    for name in ("objects", "refs", "hooks"):
        (bare / name).mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    with pytest.raises(InvalidRequest, match="inside a git directory"):
        choose_working_directory(tmp_path / "own", "org", _context_variables(str(bare / below)), ANYWHERE)


def _subdirectory_variables(given: str) -> dict[str, str]:
    return {"FOOTPLATE_CONTEXT": json.dumps({"subdirectory": given})}


def test_a_subdirectory_is_used_while_it_exists(tmp_path: Path) -> None:
    """A link is not followed, wherever it leads."""
    (tmp_path / "packages" / "website").mkdir(parents=True)
    (tmp_path / "link").symlink_to("packages")
    assert find_subdirectory(tmp_path, {}) == ""
    assert find_subdirectory(tmp_path, _subdirectory_variables("packages/website")) == "packages/website"
    for given in ("missing", "link", "link/website"):
        assert find_subdirectory(tmp_path, _subdirectory_variables(given)) == ""
    for given in ("..", "/etc", "packages/../..", "./packages"):
        with pytest.raises(InvalidRequest, match=r"context\.subdirectory"):
            find_subdirectory(tmp_path, _subdirectory_variables(given))


async def test_programs_start_in_the_subdirectory(tmp_path: Path) -> None:
    """Footplate's own programs start in the root, which no agent can remove."""
    below = tmp_path / "below"
    below.mkdir()
    (below / "file").write_text("x")
    environment = UnsandboxedEnvironment(
        str(tmp_path), deadline=lease_clock() + 60, working_directory=str(below), namespaces=False
    )
    try:
        assert (await environment.shell_directory(), environment.root) == (str(below), str(tmp_path))
        assert (await environment.shell("pwd; rm -r ../below", timeout=30)).stdout == f"{below}\n".encode()
        assert (await environment.run(["pwd"])).stdout == f"{tmp_path}\n".encode()
        await environment.write("file", b"y")
        assert await environment.read("file") == (below / "file").read_bytes() == b"y"
    finally:
        await environment.aclose()
