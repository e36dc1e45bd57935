"""Every log line has an action and the ids of its context, also the lines of libraries."""

import ast
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timing

SOURCE = Path(__file__).resolve().parents[3] / "src" / "footplate"
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
PROGRAM = """
import logging
import structlog
from footplate.telemetry import configure_logging
configure_logging()
log = structlog.get_logger("test")
with structlog.contextvars.bound_contextvars(session="sesn_1", turn="turn_1", attempt=2):
    log.info("hello", action="test.hello")
    logging.getLogger("some.library").warning("it says %s", "so")
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("it broke", action="test.broke")
"""


def _lines() -> list[dict[str, Any]]:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    return [json.loads(line) for line in result.stderr.splitlines()]


def test_lines_are_json_with_an_action_and_ids() -> None:
    hello, library, broke = _lines()
    for line in (hello, library, broke):
        assert (line["session"], line["turn"], line["attempt"]) == ("sesn_1", "turn_1", 2)
        assert line["timestamp"].endswith("Z")
    assert (hello["action"], hello["event"], hello["level"]) == ("test.hello", "hello", "info")
    assert (library["action"], library["event"]) == ("library.some.library", "it says so")
    assert "ValueError: broken" in broke["exception"]


def _parsed(path: Path) -> ast.Module:
    """Parses a file, with retries: Python 3.11 raises SystemError if another thread parses at the same time."""
    for _ in range(5):
        try:
            return ast.parse(path.read_text())
        except SystemError:
            time.sleep(0.05)
    return ast.parse(path.read_text())


def test_every_log_call_has_an_action() -> None:
    calls = [
        (path.name, node.lineno, {keyword.arg for keyword in node.keywords})
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(_parsed(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LEVELS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "log"
    ]
    assert len(calls) > 15
    assert [call for call in calls if "action" not in call[2]] == []
