"""What a scripted model may tell: a story that comes with Footplate, or a script file of one's own."""

from pathlib import Path
from typing import Final

from footplate.domain.errors import InvalidRequest
from footplate.testing import script_json
from footplate.testing.scripts import ScriptError

MODEL: Final = "anthropic:scripted"
"""A name without a price: nothing is paid."""
DISASTER_AT: Final = 4
"""The reply of the demo whose command is slow: what is killed then is killed in the middle of something."""
_FOLDER: Final = Path(__file__).parent / "story_scripts"


def is_demo(story: Path | None) -> bool:
    return story == _FOLDER / "demo.json"


def find(name: str) -> Path:
    """Checked here, so that a mistake is shown before anything starts."""
    built_in = _FOLDER / f"{name}.json"
    path = built_in if built_in.is_file() else Path(name).absolute()
    try:
        script_json.load_file(path)
    except FileNotFoundError:
        known = ", ".join(sorted(file.stem for file in _FOLDER.glob("*.json")))
        raise InvalidRequest(
            f"There is no story {name!r} and no file of that name.", help_text=f"Stories: {known}."
        ) from None
    except (OSError, ScriptError) as error:
        raise InvalidRequest(str(error), help_text="The format is described in docs/scripted.md.") from None
    return path
