"""The type check reports a missing `await`, wherever the coroutine is used."""

import shutil
from pathlib import Path

from bench.type_check import ROOT, find_type_errors

_CODE = """
async def is_allowed() -> bool:
    return False


async def run() -> int:
    if await is_allowed():
        return 0
    if is_allowed():
        return 1
    allowed = is_allowed()
    while not allowed:
        pass
    is_allowed()
    return len(allowed)
"""


def test_a_missing_await_is_reported(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "module.py").write_text(_CODE)
    for folder in ("tests", "bench"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "module.py").write_text("")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    found = [(line.split(":")[1], line.rpartition(" ")[2]) for line in find_type_errors(tmp_path)]
    assert found == [
        ("9", "[always-true]"),
        ("12", "[always-true]"),
        ("14", "[unused-coroutine]"),
        ("15", "[bad-argument-type]"),
    ]
