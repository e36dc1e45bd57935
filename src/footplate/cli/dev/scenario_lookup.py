"""Finds the script for `footplate dev --scripted`, which runs sessions with prepared model replies. The script is a
built-in scenario, or a file that the user names.
"""

from pathlib import Path
from typing import Final

from footplate.domain.errors import InvalidRequest
from footplate.testing import script_json
from footplate.testing.model_scripts import ScriptError

SCRIPTED_MODEL: Final = "anthropic:scripted"
"""A model name without a price, so that no cost is reported."""
CRASH_REPLY: Final = 4
"""Index of the demo's reply with the slow command. A worker killed then is killed in the middle of a command."""
_SCENARIO_DIR: Final = Path(__file__).parent / "scenario_scripts"


def is_demo(scenario: Path | None) -> bool:
    return scenario == _SCENARIO_DIR / "demo.json"


def find_scenario(name: str) -> Path:
    """Returns the path of a scenario. It is validated here, so that errors are shown before anything starts."""
    built_in = _SCENARIO_DIR / f"{name}.json"
    path = built_in if built_in.is_file() else Path(name).absolute()
    try:
        script_json.load_file(path)
    except FileNotFoundError:
        known = ", ".join(sorted(file.stem for file in _SCENARIO_DIR.glob("*.json")))
        raise InvalidRequest(
            f"There is no scenario or file named {name!r}.", help_text=f"Built-in scenarios: {known}."
        ) from None
    except (OSError, ScriptError) as error:
        raise InvalidRequest(str(error), help_text="The format is described in docs/scripted.md.") from None
    return path
