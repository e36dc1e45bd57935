"""The instruction files of a repository: their kinds, the trust that each needs, and their imports."""

import time

import pytest

from footplate.domain.brought import Kind, imports, kind, text_of, wanted
from footplate.domain.projects import Trust

pytestmark = pytest.mark.timing


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("CLAUDE.md", Kind.INSTRUCTIONS),
        ("src/deep/CLAUDE.md", Kind.INSTRUCTIONS),
        (".claude/CLAUDE.md", Kind.INSTRUCTIONS),
        ("src/.claude/CLAUDE.md", Kind.INSTRUCTIONS),
        (".claude/rules/go/style.md", Kind.RULE),
        (".claude/skills/deploy/SKILL.md", Kind.SKILL),
        (".claude/skills/deploy/run.sh", None),
        (".claude/skills/deploy/CLAUDE.md", None),
        (".claude/commands/fix.md", Kind.COMMAND),
        (".claude/settings.json", Kind.SETTINGS),
        (".mcp.json", Kind.SERVERS),
        (".claude/hooks/check.sh", Kind.SCRIPT),
        (".claude/settings.local.json", Kind.OTHER),
        (".claude/agents/reviewer.md", Kind.OTHER),
        (".claude/output-styles/loud.md", Kind.OTHER),
        (".claude/plugins/known.json", Kind.OTHER),
        ("CLAUDE.local.md", Kind.OTHER),
        ("README.md", None),
        ("src/.mcp.json", None),
        ("docs/.claude/settings.json", None),
        ("claude.md", None),
    ],
)
def test_kind(path: str, expected: Kind | None) -> None:
    assert kind(path) is expected


@pytest.mark.parametrize("found", Kind)
def test_only_words_are_wanted_of_what_is_trusted_for_its_words(found: Kind) -> None:
    words = {Kind.INSTRUCTIONS, Kind.RULE, Kind.SKILL, Kind.COMMAND}
    assert not wanted(found, Trust.NOTHING)
    assert wanted(found, Trust.INSTRUCTIONS) == (found in words)
    assert wanted(found, Trust.ALL) == (found in words | {Kind.SETTINGS, Kind.SERVERS, Kind.SCRIPT})


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
    found = list(imports("src/CLAUDE.md", text))
    assert found == ["src/docs/style.md", "src/notes.md", "shared/a b.md", "src/last.md"]


@pytest.mark.parametrize("hostile", ["<!--" * 16_000, "```\n" * 16_000, "`" * 64_000, "@\\ " * 21_000, "@a" * 32_000])
def test_no_text_takes_long(hostile: str) -> None:
    began = time.thread_time()
    list(imports("CLAUDE.md", hostile))
    assert time.thread_time() - began < 2


def test_text_of() -> None:
    assert text_of("\ufeffWords".encode()) == "Words"
    assert text_of(b"\xff\xfe") is None
    assert text_of(b"a\0b") is None
