"""A tag is released only if the version and a dated section of the changelog fit it."""

import pytest
from bench import release_notes

CHANGELOG = "## [Unreleased]\n\n## [0.2.0] - 2026-11-19\n\n### Added\n\n- A.\n\n## [0.1.0] - 2026-01-01\n\n- B.\n"


def test_the_notes_are_the_section_of_the_version() -> None:
    assert release_notes.find_notes(CHANGELOG, "0.2.0") == "### Added\n\n- A."
    assert release_notes.find_notes(CHANGELOG, "0.1.0") == "- B."


@pytest.mark.parametrize(
    "changelog",
    ["## [Unreleased]\n- A.\n", "## [0.2.0]\n- A.\n", "## [0.2.0] - 2026-11-19\n\n## [0.1.0] - 2026-01-01\n- B.\n"],
    ids=["missing", "undated", "empty"],
)
def test_a_version_without_notes_is_not_released(changelog: str) -> None:
    with pytest.raises(ValueError, match=r"CHANGELOG\.md"):
        release_notes.find_notes(changelog, "0.2.0")


def test_the_version_of_this_checkout_can_be_released() -> None:
    version = release_notes.find_version((release_notes.ROOT / "src/footplate/__init__.py").read_text())
    assert release_notes.read_notes(f"v{version}")
    with pytest.raises(ValueError, match=f"Tag it as v{version}"):
        release_notes.read_notes("v0.0.1")
