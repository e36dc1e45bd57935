"""The claims and screenshots of the dashboard visit every route of its router, and every section and tab."""

import re
from collections import defaultdict
from urllib.parse import parse_qs, urlsplit

import pytest
from bench.ci.lanes import ROOT
from bench.support.browser.dashboard_pages import list_pages

WEB = ROOT / "web" / "src"
_REDIRECT = "/"


def find_addresses() -> list[str]:
    return list(list_pages(defaultdict(lambda: "some_id")).values())


def find_routes() -> list[str]:
    return re.findall(r'^  path: "([^"]+)",$', (WEB / "router.tsx").read_text(), re.MULTILINE)


def find_constants(path: str, name: str) -> list[str]:
    """Returns the members of a list of strings in a file of the dashboard."""
    found = re.search(rf"export const {name} = \[([^\]]+)\]", (WEB / path).read_text())
    assert found is not None
    return re.findall(r'"([^"]+)"', found[1])


def test_every_route_of_the_router_is_visited() -> None:
    routes = find_routes()
    assert len(routes) == (WEB / "router.tsx").read_text().count("  path:")
    visited = {urlsplit(each).path for each in find_addresses()}

    def is_visited(route: str) -> bool:
        pattern = re.compile(re.sub(r"\$\w+", "some_id", route))
        return any(pattern.fullmatch(each) for each in visited)

    assert [each for each in routes if each != _REDIRECT and not is_visited(each)] == []


@pytest.mark.parametrize(
    ("page", "parameter", "path", "name"),
    [
        ("/settings", "section", "pages/settings/search.ts", "SETTINGS_SECTIONS"),
        ("/policy", "section", "pages/policy/search.ts", "POLICY_SECTIONS"),
        ("/sessions/some_id", "tab", "pages/session/search.ts", "SESSION_TABS"),
    ],
)
def test_every_section_and_tab_is_visited(page: str, parameter: str, path: str, name: str) -> None:
    parts = [urlsplit(each) for each in find_addresses()]
    visited = {value for each in parts if each.path == page for value in parse_qs(each.query).get(parameter, [])}
    assert visited == {*find_constants(path, name)}
