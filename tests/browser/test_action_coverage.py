"""Every action of the dashboard has a browser test: one with the mark `action` that names it."""

import ast
from pathlib import Path

import pytest
from bench.support.browser.dashboard_window import DashboardWindow


def find_tested_actions() -> set[str]:
    """Returns the actions that tests of this folder name, whether they run now or not."""
    found: set[str] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.action":
                found |= {str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)}
    return found


@pytest.mark.smoke
async def test_every_action_has_a_test(window: DashboardWindow) -> None:
    registered = set(await window.list_actions())
    assert len(registered) > 10
    tested = find_tested_actions()
    assert sorted(registered - tested) == []
    assert sorted(tested - registered) == [], "these actions do not exist"
