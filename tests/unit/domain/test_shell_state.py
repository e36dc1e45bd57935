"""What is stored of a persistent shell: which variables, and where its directory is on another host."""

from collections.abc import Mapping

import orjson
import pytest

from footplate.domain.sessions.shell_state import MAX_VARIABLE_BYTES, NEW_SHELL, ShellState, describe_shell

pytestmark = pytest.mark.requirement("K7")

INITIAL = {
    "PATH": "/usr/bin",
    "HOME": "/home/agent",
    "http_proxy": "http://127.0.0.1:3128",
    "FOOTPLATE_TURN_ID": "turn_1",
}


def describe(
    directory: bytes = b"/workspace",
    exported: Mapping[bytes, bytes] | None = None,
    *,
    previous: ShellState = NEW_SHELL,
    backend: str = "sandbox",
    initial_variables: Mapping[str, str] = INITIAL,
) -> ShellState:
    return describe_shell(
        directory,
        exported or {},
        previous=previous,
        backend=backend,
        initial_variables=initial_variables,
        roots={"root": "/workspace", "home": "/home/agent"},
        initial_directory="/workspace",
    )


def test_a_shell_without_changes_is_like_a_new_one() -> None:
    assert describe(exported={name.encode(): value.encode() for name, value in INITIAL.items()}) == NEW_SHELL


def test_only_changed_variables_are_stored_and_none_of_footplates_own() -> None:
    exported = {
        b"PATH": b"/opt/bin:/usr/bin",
        b"TOKEN": "sécret\n'\"".encode(),
        b"EMPTY": b"",
        b"http_proxy": b"http://127.0.0.1:3128",
        b"HOME": b"/elsewhere",
        b"PWD": b"/workspace",
        b"OLDPWD": b"/",
        b"SHLVL": b"1",
        b"BASH_ENV": b"/workspace/run-me",
        b"ENV": b"/workspace/run-me",
        b"FOOTPLATE_TURN_ID": b"turn_2",
        b"FOOTPLATE_LEASE_ID": b"lease",
        b"NOT_TEXT": b"\xff",
    }
    stored = describe(exported=exported)
    assert stored.variables == {"EMPTY": "", "TOKEN": "sécret\n'\""}
    assert stored.backend_variables == {"sandbox": {"PATH": "/opt/bin:/usr/bin"}}


def test_variables_that_a_backend_sets_itself_stay_with_this_backend() -> None:
    image = {"PATH": "/image/bin:/usr/bin", "JAVA_HOME": "/image/java"}
    on_host = describe(exported={b"PATH": b"/opt/bin:/usr/bin", b"JAVA_HOME": b"/opt/java", b"TOKEN": b"1"})
    assert on_host.select_variables("docker", image) == {"TOKEN": "1"}
    exported = {b"PATH": b"/venv/bin:/image/bin", b"JAVA_HOME": b"/image/java", b"TOKEN": b"2"}
    in_container = describe(exported=exported, previous=on_host, backend="docker", initial_variables=image)
    stored = ShellState.from_json(orjson.loads(orjson.dumps(in_container.to_json())))
    assert stored.select_variables("docker", image) == {"PATH": "/venv/bin:/image/bin", "TOKEN": "2"}
    restored = {"PATH": "/opt/bin:/usr/bin", "JAVA_HOME": "/opt/java", "TOKEN": "2"}
    assert stored.select_variables("sandbox", INITIAL) == restored
    unchanged = {b"PATH": image["PATH"].encode(), b"JAVA_HOME": image["JAVA_HOME"].encode()}
    reset = describe(exported=unchanged, previous=stored, backend="docker", initial_variables=image)
    assert reset.select_variables("docker", image) == {}
    assert reset.select_variables("sandbox", INITIAL) == {"PATH": "/opt/bin:/usr/bin", "JAVA_HOME": "/opt/java"}


def test_stored_variables_are_bounded() -> None:
    exported = {b"SMALL": b"x", b"LARGE": b"x" * MAX_VARIABLE_BYTES, b"OTHER": b"y"}
    assert describe(exported=exported).variables == {"SMALL": "x", "OTHER": "y"}


@pytest.mark.parametrize(
    ("directory", "elsewhere"),
    [
        (b"/workspace", None),
        (b"/workspace/a/b", "/data/files/a/b"),
        (b"/home/agent/.cache", "/data/home/.cache"),
        (b"/home/agent", "/data/home"),
        (b"/workspaces", "/workspaces"),
        (b"/tmp/x", "/tmp/x"),
        (b"", None),
        (b"/workspace/\xff", None),
        (b"/" + b"x" * 5000, None),
    ],
)
def test_the_directory_is_found_at_the_paths_of_another_host(directory: bytes, elsewhere: str | None) -> None:
    stored = ShellState.from_json(orjson.loads(orjson.dumps(describe(directory).to_json())))
    assert stored == describe(directory)
    assert stored.locate(root="/data/files", home="/data/home") == elsewhere


def test_a_session_without_a_stored_shell_has_a_new_one() -> None:
    assert ShellState.from_json(None) == NEW_SHELL
