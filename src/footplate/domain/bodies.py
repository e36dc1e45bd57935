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
        cut: JsonObject = {**{key: _cut(value, budget) for key, value in body.items()}, "truncated": {"bytes": size}}
        if budget <= _ITEM_LIMIT or _weight(cut) <= INLINE_LIMIT:
            return cut
        budget //= 4


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
