"""The instruction files of a repository: their kinds, the trust that each needs, and their imports."""

import time

import pytest

from footplate.domain.projects.project import Trust
from footplate.domain.projects.project_instructions import (
    InstructionKind,
    classify_path,
    decode_text,
    find_imports,
    is_loaded,
)

pytestmark = pytest.mark.timing


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("CLAUDE.md", InstructionKind.INSTRUCTIONS),
        ("src/deep/CLAUDE.md", InstructionKind.INSTRUCTIONS),
        (".claude/CLAUDE.md", InstructionKind.INSTRUCTIONS),
        ("src/.claude/CLAUDE.md", InstructionKind.INSTRUCTIONS),
        (".claude/rules/go/style.md", InstructionKind.RULE),
        (".claude/skills/deploy/SKILL.md", InstructionKind.SKILL),
        (".claude/skills/deploy/run.sh", None),
        (".claude/skills/deploy/CLAUDE.md", None),
        (".claude/commands/fix.md", InstructionKind.COMMAND),
        (".claude/settings.json", InstructionKind.SETTINGS),
        (".mcp.json", InstructionKind.SERVERS),
        (".claude/hooks/check.sh", InstructionKind.SCRIPT),
        (".claude/settings.local.json", InstructionKind.OTHER),
        (".claude/agents/reviewer.md", InstructionKind.AGENT),
        (".claude/output-styles/loud.md", InstructionKind.OTHER),
        (".claude/plugins/known.json", InstructionKind.OTHER),
        ("CLAUDE.local.md", InstructionKind.OTHER),
        ("README.md", None),
        ("src/.mcp.json", None),
        ("docs/.claude/settings.json", None),
        ("claude.md", None),
    ],
)
def test_the_kind_of_a_file(path: str, expected: InstructionKind | None) -> None:
    assert classify_path(path) is expected


@pytest.mark.parametrize("found", InstructionKind)
def test_only_text_files_are_loaded_if_instructions_are_trusted(found: InstructionKind) -> None:
    text_kinds = {
        InstructionKind.INSTRUCTIONS,
        InstructionKind.RULE,
        InstructionKind.SKILL,
        InstructionKind.COMMAND,
        InstructionKind.AGENT,
    }
    assert not is_loaded(found, Trust.NOTHING)
    assert is_loaded(found, Trust.INSTRUCTIONS) == (found in text_kinds)
    assert is_loaded(found, Trust.ALL) == (
        found in text_kinds | {InstructionKind.SETTINGS, InstructionKind.SERVERS, InstructionKind.SCRIPT}
    )


def test_imports_stay_within_the_commit() -> None:
    text = """
See @docs/style.md, and @./notes.md. Also @../shared/a\\ b.md and (not this: x@example.com).
@/etc/passwd @~/.ssh/id_rsa @../../outside.md @../../../etc/passwd @.. @. @
`@in/code.md` and
```
@in/fence.md
```
<!-- @in/comment.md -->
@last.md#part
"""
    found = list(find_imports("src/CLAUDE.md", text))
    assert found == ["src/docs/style.md", "src/notes.md", "shared/a b.md", "src/last.md"]


@pytest.mark.parametrize("hostile", ["<!--" * 16_000, "```\n" * 16_000, "`" * 64_000, "@\\ " * 21_000, "@a" * 32_000])
def test_hostile_text_is_read_in_linear_time(hostile: str) -> None:
    began = time.thread_time()
    list(find_imports("CLAUDE.md", hostile))
    assert time.thread_time() - began < 2


def test_only_valid_utf8_is_text() -> None:
    assert decode_text("\ufeffWords".encode()) == "Words"
    assert decode_text(b"\xff\xfe") is None
    assert decode_text(b"a\0b") is None
