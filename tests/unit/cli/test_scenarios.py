"""Scenarios for the scripted model: the built-in one, a user's own file, and invalid files."""

from pathlib import Path

import pytest

from footplate.cli.dev import scenario_lookup
from footplate.domain.errors import InvalidRequest
from footplate.testing import script_json


def test_the_demo_never_runs_out_of_replies() -> None:
    script = script_json.load_file(scenario_lookup.find_scenario("demo"))["default"]
    assert script.replies[-1].repeat is True


def test_a_users_own_scenario_file_is_found(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text('{"scripts": {"default": {"replies": [[{"text": "Hi"}]]}}}')
    assert scenario_lookup.find_scenario(str(file)) == file


def test_an_invalid_scenario_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no scenario or file named 'drama'") as caught:
        scenario_lookup.find_scenario("drama")
    assert "demo" in caught.value.help_text
    broken = tmp_path / "broken.json"
    broken.write_text('{"scripts": {"default": {"replies": [[{"txet": "Hi"}]]}}}')
    with pytest.raises(InvalidRequest, match="a step must be an object"):
        scenario_lookup.find_scenario(str(broken))
