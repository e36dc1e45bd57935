"""Where a turn can be left in the middle of what the CLI told. Pure."""

from collections.abc import Collection, Sequence

from footplate.harness.claude.mapping import Answered, Fact, Said


def safe_point(facts: Sequence[Fact], open_calls: Collection[str]) -> int | None:
    """How many of these are left with no call open, where a call that nobody has let through follows; or None.

    The CLI tells the result of a call and the model's next answer in one breath, if the model is quick enough.
    """
    still_open = {*open_calls}
    point: int | None = None
    for index, fact in enumerate(facts):
        if isinstance(fact, Said):
            still_open |= {call.id for call in fact.calls}
        elif isinstance(fact, Answered):
            still_open -= {result.call_id for result in fact.results}
            if not still_open and not _inside_an_answer(facts, index):
                point = index + 1
    return point if still_open else None


def _inside_an_answer(facts: Sequence[Fact], index: int) -> bool:
    """A call that the CLI refuses by itself has its result there, with more of the answer to come."""
    before = {fact.message_id for fact in facts[:index] if isinstance(fact, Said)}
    return any(isinstance(fact, Said) and fact.message_id in before for fact in facts[index:])
