"""Commands find a running `footplate dev`, and environment variables override it."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from footplate.cli.actions import doctor_checks
from footplate.cli.dev.child_process_definitions import select_environment
from footplate.cli.profile import dev_server, dev_server_check

HERE = dev_server.RunningDevServer(
    pid=os.getpid(),
    started=dev_server_check.start_time(os.getpid()),
    api_pid=os.getpid(),
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
    # No server starts here. `tests/integration/cli/test_dev_process.py` tests the real check.
    monkeypatch.setattr(dev_server_check, "listens", lambda _pid, base_url: base_url == HERE.base_url)
    return tmp_path


def test_addresses_come_from_a_running_dev(directory: Path) -> None:
    dev_server.publish_dev_server(directory, HERE)
    settings = dev_server.load_settings()
    assert (settings.database_url, settings.temporal_address) == ("postgresql://dev/x", "dev:1")


async def test_doctor_knows_the_models_of_a_running_dev(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    dev_server.publish_dev_server(directory, HERE)
    assert (await doctor_checks.check_credentials(dev_server.load_settings())).state == "warning"
    dev_server.publish_dev_server(directory, replace(HERE, providers="scripted model"))
    finding = await doctor_checks.check_credentials(dev_server.load_settings())
    assert (finding.state, finding.detail) == ("ok", "scripted model, of the running `footplate dev`")


def test_the_environment_wins(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dev_server.publish_dev_server(directory, HERE)
    monkeypatch.setenv("FOOTPLATE_DATABASE_URL", "postgresql://mine/x")
    settings = dev_server.load_settings()
    assert (settings.database_url, settings.redis_url) == ("postgresql://mine/x", "redis://dev")


def test_the_file_of_a_killed_dev_server_is_ignored(directory: Path) -> None:
    dev_server.publish_dev_server(
        directory, replace(HERE, pid=2**22 + 1, api_pid=2**22 + 1, database_url="postgresql://old/x")
    )
    assert dev_server.find_dev_server(directory) is None
    assert "old" not in dev_server.load_settings().database_url


@pytest.mark.parametrize(
    "wrong",
    [
        replace(HERE, started=HERE.started + 1),
        replace(HERE, started=0),
        replace(HERE, pid=2**22 + 1, started=0),
        replace(HERE, api_pid=1),
        replace(HERE, base_url="http://127.0.0.1:9"),
    ],
    ids=["another process", "no start time", "no process", "not its child", "another listener"],
)
def test_a_planted_file_is_ignored(directory: Path, wrong: dev_server.RunningDevServer) -> None:
    dev_server.publish_dev_server(directory, HERE)
    assert dev_server.find_dev_server(directory) == HERE
    dev_server.publish_dev_server(directory, wrong)
    assert dev_server.find_dev_server(directory) is None


def test_a_file_that_others_could_write_is_ignored(directory: Path) -> None:
    dev_server.publish_dev_server(directory, HERE)
    (directory / "dev.json").chmod(0o620)
    assert dev_server.find_dev_server(directory) is None
    (directory / "dev.json").chmod(0o600)
    directory.chmod(0o777)
    assert dev_server.find_dev_server(directory) is None


def test_a_link_is_ignored(directory: Path) -> None:
    dev_server.publish_dev_server(directory, HERE)
    (directory / "dev.json").rename(directory / "other.json")
    (directory / "dev.json").symlink_to("other.json")
    assert dev_server.find_dev_server(directory) is None


def test_a_broken_file_is_ignored(directory: Path) -> None:
    (directory / "dev.json").write_text("{")
    assert dev_server.find_dev_server(directory) is None


def test_secrets_are_readable_only_by_their_owner(directory: Path) -> None:
    dev_server.publish_dev_server(directory, HERE)
    dev_server.save_api_key(directory, "secret")
    assert dev_server.load_api_key(directory) == "secret"
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}


def test_child_processes_get_only_the_variables_that_they_need() -> None:
    given = {"PATH": "/bin", "ANTHROPIC_API_KEY": "k", "https_proxy": "p", "AWS_SECRET_ACCESS_KEY": "s", "EDITOR": "vi"}
    assert select_environment(given) == {"PATH": "/bin", "ANTHROPIC_API_KEY": "k", "https_proxy": "p"}
