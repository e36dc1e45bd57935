"""What stays in a row of a body that is too large for it: the same shape, with long texts cut.

A cut body carries `truncated: {"bytes": <size of the whole>}`; each cut text ends with a line that says so.
"""

import json
from typing import Final

from footplate.domain.json import Json, JsonObject

INLINE_LIMIT: Final = 64 * 1024
_TEXT_LIMIT: Final = 16 * 1024
_ITEM_LIMIT: Final = 64


def shorten(body: JsonObject, *, size: int) -> JsonObject:
    budget = _TEXT_LIMIT
    while True:
        cut = _marked({key: _cut(value, budget) for key, value in body.items()}, size)
        if _weight(cut) <= INLINE_LIMIT:
            return cut
        if budget <= _ITEM_LIMIT:
            # Made of many small things, or of long names: no text can be blamed.
            return _marked({key: _emptied(value, budget) for key, value in body.items()}, size)
        budget //= 4


def _marked(cut: JsonObject, size: int) -> JsonObject:
    return {**cut, "truncated": {"bytes": size}}


def _emptied(value: Json, budget: int) -> Json:
    if isinstance(value, list):
        return []
    return {} if isinstance(value, dict) else _cut(value, budget)


def _cut(value: Json, budget: int) -> Json:
    if isinstance(value, str) and len(value) > budget:
        return f"{value[:budget]}\n[{len(value) - budget} characters left out]"
    if isinstance(value, list):
        return [_cut(item, budget) for item in value[:_ITEM_LIMIT]]
    if isinstance(value, dict):
        return {key: _cut(item, budget) for key, item in list(value.items())[:_ITEM_LIMIT]}
    return value


def _weight(value: Json) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
