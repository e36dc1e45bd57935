"""`footplate login` and `logout` use the address and the key of the profile that they change, whatever the environment
says.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Self

import pytest
from typer.testing import CliRunner

from footplate.cli import connection
from footplate.cli.actions import sign_in
from footplate.cli.app import app
from footplate.cli.profile import server_profiles
from footplate.cli.profile.server_profiles import ProfileConfig
from footplate.client import DeviceKey


class Client:
    """Records with which key at which address a command revokes its key."""

    revoked: ClassVar[list[tuple[str, str]]] = []

    def __init__(self, base_url: str, api_key: str, **_: object) -> None:
        self.server = (base_url, api_key)
        self.sign_in = self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def revoke_own_key(self) -> None:
        self.revoked.append(self.server)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("FOOTPLATE_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize("arguments", [[], ["--profile", "work"]])
def test_logout_revokes_the_key_of_the_profile(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.setattr(connection, "AsyncFootplate", Client)
    monkeypatch.setattr(Client, "revoked", [])
    server_profiles.save_config(ProfileConfig("work", {"work": {"base_url": "http://work", "api_key": "work-key"}}))
    monkeypatch.setenv("FOOTPLATE_API_KEY", "env-key")
    monkeypatch.setenv("FOOTPLATE_BASE_URL", "http://env")
    done = CliRunner().invoke(app, ["logout", *arguments])
    assert done.exit_code == 0, done.output
    assert Client.revoked == [("http://work", "work-key")]
    assert server_profiles.load_config().profiles == {"work": {"base_url": "http://work"}}


def test_logout_without_an_address_keeps_the_key() -> None:
    config = ProfileConfig("work", {"work": {"api_key": "work-key"}})
    server_profiles.save_config(config)
    assert CliRunner().invoke(app, ["logout"]).exit_code == 1
    assert server_profiles.load_config() == config


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "http://work"),
        (["--profile", "work"], "http://work"),
        (["--profile", "new"], "http://env"),
        (["http://named"], "http://named"),
    ],
)
def test_login_keeps_the_address_of_the_profile(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: str
) -> None:
    used = []

    async def sign_in_there(address: str) -> DeviceKey:
        used.append(address)
        return DeviceKey(
            api_key="new-key",
            api_key_id="key_1",
            member_id="memb_1",
            member_name="ann",
            organisation_id="org",
            expires_at=datetime(2030, 1, 1, tzinfo=UTC),
        )

    monkeypatch.setattr(sign_in, "_sign_in", sign_in_there)
    monkeypatch.setenv("FOOTPLATE_BASE_URL", "http://env")
    server_profiles.save_config(ProfileConfig("work", {"work": {"base_url": "http://work", "api_key": "old"}}))
    done = CliRunner().invoke(app, ["login", *arguments])
    assert done.exit_code == 0, done.output
    assert used == [expected]
