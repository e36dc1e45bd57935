"""Reads the code blocks of the README's first section and finds those that build, install, start and run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.docs.snippets import Snippet, snippets

from bench.prove.figure import NotHeld, require

ROOT: Final = Path(__file__).resolve().parents[3]
README: Final = ROOT / "README.md"
_SECTION: Final = "## The first five minutes\n"


@dataclass(frozen=True, slots=True)
class ReadmeBlocks:
    build: str
    """Builds the wheel; the only block that needs a checkout."""
    install: Sequence[str]
    serve: str
    ready: str
    """Text that `serve` prints when it is ready."""
    run: str


def read_first_section() -> ReadmeBlocks:
    """Returns the blocks. Raises `NotHeld` unless the section's steps are install, start and run."""
    blocks = _blocks()
    build = [block.code for block in blocks if "pip wheel" in block.code]
    served = [start_index for start_index, block in enumerate(blocks) if "background" in block.options]
    require(holds=len(build) == len(served) == 1, otherwise="the README needs exactly one build and one start block")
    place = served[0]
    rest = blocks[place + 1 :]
    require(holds=len(rest) == 1, otherwise=f"the README's start is followed by {len(rest)} blocks instead of one run")
    until = next(option for option in blocks[place].options if option.startswith("until="))
    return ReadmeBlocks(
        build[0],
        [block.code for block in blocks[:place] if block.code not in build],
        blocks[place].code,
        until.removeprefix("until=").replace("_", " "),
        rest[0].code,
    )


def _blocks() -> list[Snippet]:
    text = README.read_text()
    if _SECTION not in text:
        raise NotHeld(f"the README has no section {_SECTION.strip()!r}")
    begin = text[: text.index(_SECTION)].count("\n")
    end = begin + text[text.index(_SECTION) + len(_SECTION) :].partition("\n#")[0].count("\n")
    return [block for block in snippets(README) if block.is_run and begin <= block.line <= end + 2]
