"""The names of settings in the environment and in the settings file."""

from pathlib import Path

import pytest

from footplate.config import Settings
from footplate.domain.errors import InvalidRequest
from footplate.settings_sources import load_settings_file, resolve_variables, without_settings

FIELDS = Settings.model_fields


def test_a_double_underscore_is_another_name() -> None:
    variables = {"footplate_temporal__address": "a:1", "footplate_port": "1", "path": "/bin"}
    assert resolve_variables(variables, FIELDS) == {
        "footplate_temporal_address": "a:1",
        "footplate_port": "1",
        "path": "/bin",
    }


def test_a_variable_names_the_file_with_the_value(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret \n")
    resolved = resolve_variables({"footplate_temporal__api_key_file": str(tmp_path / "key")}, FIELDS)
    assert resolved == {"footplate_temporal_api_key": "secret "}


def test_two_variables_for_one_setting_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"^FOOTPLATE_PORT and FOOTPLATE_PORT_FILE are the same setting"):
        resolve_variables({"footplate_port": "1", "footplate_port_file": str(tmp_path)}, FIELDS)


def test_a_file_that_cannot_be_read_is_named_with_its_variable() -> None:
    with pytest.raises(InvalidRequest, match=r"^FOOTPLATE_DATABASE_URL_FILE names the file /no/such, which cannot be"):
        resolve_variables({"FOOTPLATE_DATABASE_URL_FILE": "/no/such"}, FIELDS)


def test_other_names_of_a_setting_are_omitted() -> None:
    variables = {"FOOTPLATE_PORT_FILE": "a", "FOOTPLATE_DATABASE__URL": "b", "FOOTPLATE_HOST": "c", "PATH": "d"}
    taken = ("FOOTPLATE_PORT", "FOOTPLATE_DATABASE_URL")
    assert without_settings(variables, taken, FIELDS) == {"FOOTPLATE_HOST": "c", "PATH": "d"}


def test_variables_win_over_the_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("secret")
    file = tmp_path / "settings.toml"
    file.write_text(f"""
        port = 1234
        [temporal]
        address = "a:1"
        api_key_file = "{tmp_path / "key"}"
        [organisation_limits.organisation]
        concurrent_turns = 5
    """)
    monkeypatch.setenv("FOOTPLATE_SETTINGS_FILE", str(file))
    monkeypatch.setenv("FOOTPLATE_TEMPORAL__ADDRESS", "b:2")
    settings = Settings()
    assert (settings.port, settings.temporal_address) == (1234, "b:2")
    assert settings.temporal_api_key is not None
    assert settings.temporal_api_key.get_secret_value() == "secret"
    assert settings.organisation_limits == {"organisation": {"concurrent_turns": 5}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("prot = 1", r"^prot in the settings file .* is not a setting"),
        ("[temporal]\nadress = 'a'", r"^temporal\.adress in the settings file .* is not a setting"),
        (
            "temporal_address = 'a'\n[temporal]\naddress = 'b'",
            r"^temporal\.address in .* is set twice",
        ),
        ("port = ", r"cannot be read: Invalid value"),
    ],
)
def test_mistakes_in_the_settings_file_are_named(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(content)
    with pytest.raises(InvalidRequest, match=message):
        load_settings_file(file, FIELDS)
