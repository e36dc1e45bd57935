"""Finds a safe point in the transcript lines that are not recorded yet. At a safe point, no tool call is open, so the
turn can be handed over to another worker.
"""

from collections.abc import Collection, Sequence

from footplate.harness.claude.transcripts.sdk_message_parser import Fact, ResponseLine, ToolResults


def find_safe_point(facts: Sequence[Fact], open_calls: Collection[str]) -> int | None:
    """The number of leading facts after which no call is open, if the rest contains a call that was not permitted yet.
    Otherwise None.

    If the model is fast, the CLI writes a call's result and the model's next response together.
    """
    still_open = {*open_calls}
    point: int | None = None
    for index, fact in enumerate(facts):
        if isinstance(fact, ResponseLine):
            still_open |= {call.id for call in fact.calls}
        elif isinstance(fact, ToolResults):
            still_open -= {result.call_id for result in fact.results}
            if not still_open and not _is_inside_response(facts, index):
                point = index + 1
    return point if still_open else None


def _is_inside_response(facts: Sequence[Fact], index: int) -> bool:
    """Whether more of the same response follows. A call that the CLI itself refuses has its result in the middle of the
    response.
    """
    before = {fact.message_id for fact in facts[:index] if isinstance(fact, ResponseLine)}
    return any(isinstance(fact, ResponseLine) and fact.message_id in before for fact in facts[index:])
