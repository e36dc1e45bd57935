"""The server that a command uses, and the ids that it stores for that server."""

import json
import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from footplate.cli.actions.sessions import select_timeout
from footplate.cli.app import app
from footplate.cli.profile import dev_server, dev_server_check, saved_ids, server_profiles, xdg_paths
from footplate.cli.profile.server_profiles import NoServerSelected, ProfileConfig
from footplate.client import ClientError
from footplate.config import default_data_dir

DEV = dev_server.RunningDevServer(
    pid=os.getpid(),
    started=dev_server_check.start_time(os.getpid()),
    api_pid=os.getpid(),
    database_url="",
    redis_url="",
    temporal_address="",
    base_url="http://dev",
    model="m-dev",
)
WORK = {"base_url": "http://work", "api_key": "work-key", "model": "m-work"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("FOOTPLATE_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(dev_server_check, "listens", lambda _pid, base_url: base_url == DEV.base_url)
    return tmp_path


def _publish_dev_server() -> None:
    dev_server.publish_dev_server(xdg_paths.data_dir(), DEV)
    dev_server.save_api_key(xdg_paths.data_dir(), "dev-key")


def _config(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["config", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_paths_are_those_of_the_settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert xdg_paths.data_dir() == default_data_dir() == home / ".local/share/footplate"
    monkeypatch.setenv("XDG_DATA_HOME", "/elsewhere")
    assert xdg_paths.data_dir() == default_data_dir() == Path("/elsewhere/footplate")
    assert xdg_paths.config_file() == home / ".config/footplate/config.json"
    monkeypatch.setenv("XDG_CONFIG_HOME", "/conf")
    assert xdg_paths.config_file() == Path("/conf/footplate/config.json")


def test_a_local_dev_server_needs_no_configuration() -> None:
    with pytest.raises(NoServerSelected, match="footplate dev"):
        server_profiles.select_server()
    _publish_dev_server()
    found = server_profiles.select_server()
    assert (found.base_url, found.api_key, found.model) == ("http://dev", "dev-key", "m-dev")


def test_options_override_environment_and_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    _publish_dev_server()
    server_profiles.save_config(
        ProfileConfig("work", {"work": WORK, "home": {"base_url": "http://home", "api_key": "h"}})
    )
    assert server_profiles.select_server().base_url == "http://work"
    assert server_profiles.select_server("local").base_url == "http://dev"
    monkeypatch.setenv("FOOTPLATE_BASE_URL", "http://env")
    monkeypatch.setenv("FOOTPLATE_API_KEY", "env-key")
    assert server_profiles.select_server().base_url == "http://env"
    assert server_profiles.select_server("home").base_url == "http://home"
    monkeypatch.setenv("FOOTPLATE_PROFILE", "work")
    assert server_profiles.select_server().base_url == "http://work"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ProfileConfig("nobody"), "no profile 'nobody'"),
        (ProfileConfig("half", {"half": {"base_url": "http://x"}}), "no API key"),
        (ProfileConfig("half", {"half": {"api_key": "x"}}), "no base_url"),
    ],
)
def test_missing_settings_are_reported(config: ProfileConfig, message: str) -> None:
    server_profiles.save_config(config)
    with pytest.raises(NoServerSelected, match=message):
        server_profiles.select_server()


def test_a_broken_file_is_named(home: Path) -> None:
    xdg_paths.config_file().parent.mkdir(parents=True)
    xdg_paths.config_file().write_text("{")
    with pytest.raises(NoServerSelected, match=r"config\.json"):
        server_profiles.select_server()
    assert "config.json" in _config("list", code=1)


def test_config_sets_reads_selects_lists_and_removes_profiles() -> None:
    _config("set", "base_url", "http://work", "--profile", "work")
    _config("set", "api_key", "a-secret-1234")
    assert server_profiles.select_server().api_key == "a-secret-1234"
    assert _config("get", "base_url") == "http://work\n"
    assert stat.S_IMODE(xdg_paths.config_file().stat().st_mode) == 0o600
    listed = _config("list")
    assert "http://work" in listed
    assert "a-secret" not in listed
    shown = {each["name"]: each for each in json.loads(_config("list", "--json"))}
    assert shown["work"] == {
        "name": "work",
        "current": True,
        "base_url": "http://work",
        "api_key": "…1234",
        "model": None,
        "harness": None,
        "agent": None,
        "environment": None,
        "timeout": None,
    }
    assert shown["local"]["current"] is False
    _config("use", "local")
    assert json.loads(_config("list", "--json"))[1]["current"] is True
    _config("rm", "work")
    assert server_profiles.load_config().profiles == {}


def test_config_reports_invalid_arguments() -> None:
    assert "base_url" in _config("set", "colour", "red", code=2)
    assert "config set base_url" in _config("use", "nobody", code=1)
    assert "not set" in _config("get", "model", code=1)
    assert "needs no settings" in _config("set", "model", "m", "--profile", "local", code=2)


def test_ids_are_stored_and_deleted_per_server() -> None:
    saved_ids.remember_ids("http://a", agent="agent_1", session="sesn_1")
    saved_ids.remember_ids("http://b", agent="agent_2")
    saved_ids.remember_ids("http://a", session="sesn_2")
    assert [saved_ids.recall_id("http://a", "agent"), saved_ids.recall_id("http://a", "session")] == [
        "agent_1",
        "sesn_2",
    ]
    saved_ids.forget_ids("http://a", "agent")
    assert not saved_ids.recall_id("http://a", "agent")
    assert saved_ids.recall_id("http://b", "agent") == "agent_2"
    xdg_paths.state_file().write_text("broken")
    assert saved_ids.recall_id("http://b", "agent") is None


def test_an_unwritable_home_is_not_an_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "file"))
    saved_ids.remember_ids("http://a", agent="agent_1")
    assert saved_ids.recall_id("http://a", "agent") is None


@pytest.mark.requirement("R7")
def test_run_has_a_timeout_that_can_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    server_profiles.save_config(ProfileConfig("work", {"work": WORK}))
    assert select_timeout(None, server_profiles.select_server()) == 600
    assert select_timeout(0, server_profiles.select_server()) is None
    assert "number of seconds" in _config("set", "timeout", "soon", code=2)
    _config("set", "timeout", "1200")
    assert select_timeout(None, server_profiles.select_server()) == 1200
    assert select_timeout(5, server_profiles.select_server()) == 5
    monkeypatch.setenv("FOOTPLATE_RUN_TIMEOUT", "0")
    assert select_timeout(None, server_profiles.select_server()) is None
    monkeypatch.setenv("FOOTPLATE_RUN_TIMEOUT", "soon")
    with pytest.raises(ClientError, match="not a number of seconds"):
        select_timeout(None, server_profiles.select_server())
