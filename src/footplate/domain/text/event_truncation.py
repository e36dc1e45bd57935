"""Truncates an event body that is too large for a database row: keeps its structure, and cuts long texts and lists.

A truncated body has the field `truncated: {"bytes": <size of the full body>}`. Each cut text ends with a line that says
how many characters were omitted.
"""

import json
from typing import Final

from footplate.domain.json import Json, JsonObject

INLINE_LIMIT: Final = 64 * 1024
_TEXT_LIMIT: Final = 16 * 1024
_ITEM_LIMIT: Final = 64


def truncate_body(body: JsonObject, *, size: int) -> JsonObject:
    budget = _TEXT_LIMIT
    while True:
        cut = _mark_truncated({key: _truncate(value, budget) for key, value in body.items()}, size)
        if _encoded_size(cut) <= INLINE_LIMIT:
            return cut
        if budget <= _ITEM_LIMIT:
            # The size comes from many small values or long names, not from a long text.
            return _mark_truncated({key: _drop_collections(value, budget) for key, value in body.items()}, size)
        budget //= 4


def _mark_truncated(cut: JsonObject, size: int) -> JsonObject:
    return {**cut, "truncated": {"bytes": size}}


def _drop_collections(value: Json, budget: int) -> Json:
    if isinstance(value, list):
        return []
    return {} if isinstance(value, dict) else _truncate(value, budget)


def _truncate(value: Json, budget: int) -> Json:
    if isinstance(value, str) and len(value) > budget:
        return f"{value[:budget]}\n[{len(value) - budget} characters omitted]"
    if isinstance(value, list):
        return [_truncate(item, budget) for item in value[:_ITEM_LIMIT]]
    if isinstance(value, dict):
        return {key: _truncate(item, budget) for key, item in list(value.items())[:_ITEM_LIMIT]}
    return value


def _encoded_size(value: Json) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
