"""docs/dashboard has a picture of each page in each size and theme, and a page of the documentation shows it."""

import re
from collections import defaultdict
from typing import Final, get_args

import pytest
from bench.ci.lanes import ROOT
from bench.support.browser.dashboard_pages import list_pages
from bench.support.browser.dashboard_screenshots import NOT_SHOWN, OUTPUT, SIZES
from bench.support.browser.dashboard_window import Theme

_MAX_BYTES: Final = 6_000_000
PAGES: Final = sorted(set(list_pages(defaultdict(str))) - NOT_SHOWN)
PICTURES: Final = {f"{page}-{size}-{theme}.webp" for page in PAGES for size in SIZES for theme in get_args(Theme)}


def test_each_page_has_its_pictures_and_no_other_is_stored() -> None:
    stored = [*(ROOT / OUTPUT).iterdir()]
    assert {each.name for each in stored} == PICTURES
    assert sum(each.stat().st_size for each in stored) < _MAX_BYTES


@pytest.mark.parametrize("page", PAGES)
def test_the_documentation_shows_the_page(page: str) -> None:
    shown = re.findall(r"dashboard/([\w-]+\.webp)", (ROOT / "docs" / "dashboard-screens.md").read_text())
    assert {each for each in PICTURES if each.startswith(f"{page}-") and each in shown} >= {
        f"{page}-{size}-{theme}.webp" for size in SIZES for theme in get_args(Theme)
    }
