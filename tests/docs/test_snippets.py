"""Every command and snippet of the pages works, in the order in which a reader meets them."""

from pathlib import Path

import pytest
from tests.docs import snippets

from footplate.stack.ports import free_port

PAGES = [page for page in snippets.pages() if any(snippet.is_run for snippet in snippets.snippets(page))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_reader_can_follow_the_page(page: Path, tmp_path: Path) -> None:
    reader = snippets.Reader(tmp_path, FOOTPLATE_PORT=str(free_port()))
    try:
        for snippet in snippets.snippets(page):
            if snippet.is_run:
                reader.run(snippet)
    finally:
        reader.close()


def test_the_readme_is_run() -> None:
    assert "README.md" in [page.name for page in PAGES]


def test_shell_commands_are_not_hidden_in_blocks_that_are_not_run() -> None:
    """A block without a language would be shown as code and never tried."""
    for page in snippets.pages():
        languages = {snippet.language for snippet in snippets.snippets(page)}
        assert languages <= {"bash", "python", "text", "json"}, page
