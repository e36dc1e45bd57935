"""The judgement of door-3 finds lost and repeated requests."""

import pytest
from bench.support.retries.post_outcomes import CreatedObjects, find_broken_promises
from bench.support.retries.sdk_posts import Posted


def _post(event_id: str | None, mark: str = "hello") -> Posted:
    return Posted("send", mark, event_id, 0, 0.01)


def _found(*things: tuple[str, str]) -> CreatedObjects:
    return {"send": things, "session": (), "agent": ()}


@pytest.mark.parametrize(
    ("posted", "found"),
    [
        ([_post("e1")], _found(("e1", "hello"))),
        ([_post("e1"), _post("e2")], _found(("e1", "hello"), ("e2", "hello"))),
        ([_post(None)], _found()),
        ([_post(None)], _found(("e1", "hello"))),
        ([_post("e1")], _found(("e1", "hello"), ("e9", "of somebody else"))),
    ],
    ids=["once", "twice on purpose", "given up, not made", "given up, made", "not ours"],
)
def test_fulfilled_promises_are_not_reported(posted: list[Posted], found: CreatedObjects) -> None:
    assert not list(find_broken_promises(posted, found))


@pytest.mark.parametrize(
    ("posted", "found", "complaint"),
    [
        ([_post("e1")], _found(), "does not exist"),
        ([_post("e1")], _found(("e1", "hello"), ("e2", "hello")), "created 2 times"),
        ([_post(None)], _found(("e1", "hello"), ("e2", "hello")), "created 2 times"),
        ([_post("e1"), _post("e1")], _found(("e1", "hello")), "returned to 2 callers"),
    ],
    ids=["lost", "made twice", "given up, made twice", "two taken for one"],
)
def test_broken_promises_are_found(posted: list[Posted], found: CreatedObjects, complaint: str) -> None:
    assert any(complaint in fault for fault in find_broken_promises(posted, found))
