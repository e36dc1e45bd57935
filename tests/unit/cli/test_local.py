"""How commands find a running `footplate dev`, and that the environment still wins."""

import os
import stat
from pathlib import Path

import pytest

from footplate.cli import local
from footplate.cli.children import passed_on

HERE = local.Running(
    pid=os.getpid(),
    database_url="postgresql://dev/x",
    redis_url="redis://dev",
    temporal_address="dev:1",
    base_url="http://127.0.0.1:8700",
)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("FOOTPLATE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FOOTPLATE_DATA_DIR", str(tmp_path))
    return tmp_path


def test_addresses_come_from_a_running_dev(directory: Path) -> None:
    local.publish(directory, HERE)
    settings = local.settings()
    assert (settings.database_url, settings.temporal_address) == ("postgresql://dev/x", "dev:1")


def test_the_environment_wins(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local.publish(directory, HERE)
    monkeypatch.setenv("FOOTPLATE_DATABASE_URL", "postgresql://mine/x")
    settings = local.settings()
    assert (settings.database_url, settings.redis_url) == ("postgresql://mine/x", "redis://dev")


def test_what_a_killed_dev_left_does_not_count(directory: Path) -> None:
    gone = local.Running(
        pid=2**22 + 1, database_url="postgresql://old/x", redis_url="", temporal_address="", base_url=""
    )
    local.publish(directory, gone)
    assert local.find(directory) is None
    assert "old" not in local.settings().database_url


def test_a_broken_file_does_not_count(directory: Path) -> None:
    (directory / "dev.json").write_text("{")
    assert local.find(directory) is None


def test_secrets_are_readable_by_their_owner_alone(directory: Path) -> None:
    local.publish(directory, HERE)
    local.keep_key(directory, "secret")
    assert local.key(directory) == "secret"
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}


def test_children_are_given_what_they_need_and_nothing_else() -> None:
    given = {"PATH": "/bin", "ANTHROPIC_API_KEY": "k", "https_proxy": "p", "AWS_SECRET_ACCESS_KEY": "s", "EDITOR": "vi"}
    assert passed_on(given) == {"PATH": "/bin", "ANTHROPIC_API_KEY": "k", "https_proxy": "p"}
