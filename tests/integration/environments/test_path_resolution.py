"""Resolved paths and the shell's directory, as processes inside the environment see them."""

from pathlib import Path

import pytest

from footplate.environments.base_environment import BaseEnvironment
from footplate.environments.programs.safe_file_access import resolve_path


async def test_links_are_resolved_as_inside_the_environment(environment: BaseEnvironment) -> None:
    root = environment.root
    result = await environment.shell(
        "mkdir -p src && echo x > src/a && ln -s src/a link && ln -s /etc out && ln -s circle circle", timeout=10
    )
    assert result.exit_code == 0, result
    paths = [f"{root}/{name}" for name in ("link", "out/hosts", "src/../src/a", "not/there", "circle", "a\0b")]
    found = await environment.resolve_paths(paths)
    assert found == [f"{root}/src/a", "/etc/hosts", f"{root}/src/a", f"{root}/not/there", None, None]
    assert await environment.resolve_paths([]) == []


async def test_the_shells_directory(environment: BaseEnvironment) -> None:
    root = environment.root
    assert await environment.shell_directory() == root
    await environment.shell("mkdir -p 'deep er/x' && cd 'deep er/x'", timeout=10)
    assert await environment.shell_directory() == f"{root}/deep er/x"
    await environment.shell("pwd() { echo /elsewhere; }; PWD=/elsewhere; cd /", timeout=10)
    assert await environment.shell_directory() == "/"
    await environment.restart_shell()
    assert await environment.shell_directory() == root


def test_a_relative_path_in_a_deleted_directory_is_not_resolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "deleted"
    directory.mkdir()
    monkeypatch.chdir(directory)
    directory.rmdir()
    assert resolve_path(b"a") == b""
