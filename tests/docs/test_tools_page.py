"""docs/tools.md matches the toolset: every tool, input, setting and limit."""

import re
from pathlib import Path

from footplate.config import Settings
from footplate.harness.native.toolset import builtin_tools, tool_inputs
from footplate.harness.native.web.download import MAX_REDIRECTS
from footplate.harness.native.web.search import MAX_RESULTS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tools.md").read_text()


def test_every_tool_and_input_is_listed() -> None:
    listed = {
        name: re.findall(r"`(\w+)`", inputs)
        for name, inputs in re.findall(r"^\| `(\w+)` \| ([^|]*) \|", PAGE, re.MULTILINE)
    }
    for name, model in tool_inputs.TOOL_INPUTS.items():
        assert listed[name] == list(model.model_fields), name


def test_every_setting_exists_and_its_default_is_documented() -> None:
    named = set(re.findall(r"FOOTPLATE_(\w+)", PAGE))
    fields = {name.upper(): field for name, field in Settings.model_fields.items()}
    wanted = {name for name in fields if name.startswith(("WEB_", "SEARCH_"))}
    assert wanted <= named <= set(fields)
    assert f"{fields['WEB_FETCH_BYTES'].default:,} bytes" in PAGE
    assert f"{fields['WEB_FETCH_SECONDS'].default:g} s for the whole fetch" in PAGE


def test_the_limits_are_documented() -> None:
    assert f"{builtin_tools.OUTPUT_LIMIT:,} characters" in PAGE
    assert f"{builtin_tools.DEFAULT_TIMEOUT:g} s unless" in PAGE
    assert f"| redirects | {MAX_REDIRECTS}," in PAGE
    assert MAX_RESULTS == 10
    assert "up to ten results" in PAGE
