"""Which script answers, and at which index."""

from collections.abc import Mapping

import pytest

from footplate.domain.json import Json, JsonObject
from footplate.testing.selection import Selection, select


def body(*messages: tuple[str, Json], system: Json = None) -> JsonObject:
    return {"system": system, "messages": [{"role": role, "content": content} for role, content in messages]}


def choose(data: JsonObject, headers: Mapping[str, str] | None = None, *installed: str) -> tuple[str, int]:
    chosen: Selection = select(headers or {}, data, installed)
    return chosen.script, chosen.n


RESULT: Json = [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "[[script:x]]"}]}]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (body(), ("default", 0)),
        (body(("user", "plain")), ("default", 0)),
        (body(("user", "[[script:a]]")), ("a", 0)),
        (body(("user", "[[script:a]] [[script:b.c-d]]")), ("b.c-d", 0)),
        (body(("user", "[[script:a]]"), ("assistant", "1"), ("user", RESULT), ("assistant", "2")), ("a", 2)),
        (body(("user", "[[script:a]]"), ("assistant", "1"), ("user", "[[script:a]]")), ("a", 0)),
        (body(("user", "[[script:a]]"), ("assistant", "[[script:b]]"), ("user", "more")), ("a", 1)),
        (body(("user", "hi"), system="Be kind. [[script:sys]]"), ("sys", 0)),
        (
            body(
                ("user", "hi"), ("assistant", "1"), ("user", "x"), system=[{"type": "text", "text": "[[script:sys]]"}]
            ),
            ("sys", 1),
        ),
        (body(("system", "[[script:sys]]"), ("user", "hi")), ("sys", 0)),
        (body(("user", "[[script:a]]"), ("system", "[[script:sys]]")), ("a", 0)),
        (body(("user", [{"type": "text", "text": "[[script:a]]"}, {"type": "image"}])), ("a", 0)),
        ({"messages": ["odd", {"role": "user"}]}, ("default", 0)),
    ],
)
def test_choice(data: JsonObject, expected: tuple[str, int]) -> None:
    assert choose(data) == expected


def test_a_script_named_like_the_session_wins() -> None:
    data = body(("user", "[[script:a]]"), ("assistant", "1"), ("user", "[[script:a]]"))
    headers = {"x-footplate-session": "sesn_1"}
    assert choose(data, headers) == ("a", 0)
    assert choose(data, headers, "sesn_1") == ("sesn_1", 1)
    assert choose(data, {"x-claude-code-session-id": "c1"}, "c1") == ("c1", 1)


def test_conversations_are_told_apart_by_session_or_by_what_was_said() -> None:
    one, other = body(("user", "one")), body(("user", "other"))
    session = {"x-footplate-session": "s"}
    assert select({}, one, ()).conversation == select({}, one, ()).conversation
    assert select({}, one, ()).conversation != select({}, other, ()).conversation
    assert select(session, one, ()).conversation == select(session, other, ()).conversation
    assert select(session, one, ()).conversation != select({"x-footplate-session": "t"}, one, ()).conversation
