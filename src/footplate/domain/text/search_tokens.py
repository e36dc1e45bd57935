"""Splits text into the words of the search index, and a search into its terms.

A word is a run of letters and digits in lower case, so a path or an identifier such as `src/data_base.py` has the words
`src`, `data`, `base` and `py`. Indexed text and searches are split in the same way.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from footplate.domain.json import Json
from footplate.domain.policy.permissions import TOOL_NAMES

MAX_TERMS: Final = 10
"""Further words of a search are ignored."""
_MAX_TOKEN_LENGTH: Final = 64
"""Longer runs are encoded data, which nobody searches for."""
_MAX_TEXT_LENGTH: Final = 20_000
"""How much of a message is indexed."""
_TOKEN: Final = re.compile(r"[^\W_]+")
_TERM: Final = re.compile(r'"([^"]*)"?|(\S+)')
_PATH_FIELDS: Final = ("file_path", "path", "notebook_path")
_WRITING_TOOLS: Final = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """What a session must contain: these words in one place."""

    tokens: Sequence[str]
    is_exact: bool = False
    """Whether each word is complete. Otherwise the beginning of a word is enough."""


def split_into_tokens(text: str) -> list[str]:
    """Returns the words of the first part of a text."""
    return [token for token in _TOKEN.findall(text[:_MAX_TEXT_LENGTH].lower()) if len(token) <= _MAX_TOKEN_LENGTH]


def parse_search(text: str) -> list[SearchTerm]:
    """Returns the terms that a session must all contain. Quoted words must be complete and in one place."""
    terms = []
    for quoted, plain in _TERM.findall(text):
        tokens = split_into_tokens(quoted or plain)
        if tokens:
            terms.append(SearchTerm(tokens, is_exact=bool(quoted)))
    return terms[:MAX_TERMS]


def event_tokens(event_type: str, body: Mapping[str, Json]) -> Iterable[str]:
    """Returns the words of a message, or of the path of a file that a call writes."""
    if event_type == "agent.tool_use":
        name, tool_input = body.get("name"), body.get("input")
        if isinstance(tool_input, dict) and TOOL_NAMES.get(str(name), name) in _WRITING_TOOLS:
            for key in _PATH_FIELDS:
                yield from split_into_tokens(str(tool_input.get(key) or ""))
        return
    content, remaining = body.get("content"), _MAX_TEXT_LENGTH
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and isinstance(text := block.get("text"), str):
            yield from split_into_tokens(text[:remaining])
            remaining = max(0, remaining - len(text))
