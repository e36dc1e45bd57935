"""Every command and snippet of the documentation works, in reading order."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs import snippets

PAGES = [page for page in snippets.pages() if any(snippet.is_run for snippet in snippets.snippets(page))]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[snippets.SharedProcesses]:
    opened = snippets.SharedProcesses(tmp_path_factory.mktemp("pages"))
    yield opened
    opened.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_reader_can_follow_the_page(page: Path, tmp_path: Path, shared: snippets.SharedProcesses) -> None:
    snippets.PageRunner(page, tmp_path, shared).run()


def test_the_readme_is_run() -> None:
    assert "README.md" in [page.name for page in PAGES]


def test_shell_commands_are_not_hidden_in_blocks_that_are_not_run() -> None:
    """A block without a language would never be run."""
    for page in snippets.pages():
        languages = {snippet.language for snippet in snippets.snippets(page)}
        assert languages <= {"bash", "python", "text", "json"}, page
