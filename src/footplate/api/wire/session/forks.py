"""Wire models of forks: the fork point, and the fields that differ from the parent session. A fork is a session that
starts from the state of another session.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Final

from pydantic import Field

from footplate.api.wire.agent.agents import Model, normalise_model
from footplate.api.wire.request_base import NOT_NULLABLE, Body, Id, MetadataPatch, merge_metadata
from footplate.api.wire.session.events import MAX_INITIAL_EVENTS
from footplate.api.wire.session.sessions import AgentChoice, InitialEvent, Title
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.ports.api import ForkPoint
from footplate.domain.sessions.turns import Session

_MAX_POSITION: Final = 2**63 - 1


class SessionFork(Body):
    """By default the fork starts after the newest event. Omitted fields are taken from the parent."""

    at_event_id: Annotated[
        Id | None,
        Field(
            description="The last event that the fork inherits. "
            "For an event that was queued, the position where it was processed counts."
        ),
    ] = None
    at_position: Annotated[
        int | None,
        Field(
            ge=1,
            le=_MAX_POSITION,
            description="Position of the event, instead of its ID. In a stream, it is the `id` of the event's frame.",
        ),
    ] = None
    agent: AgentChoice | None = None
    model: Model = NOT_NULLABLE
    environment_id: Id | None = None
    title: Title | None = None
    metadata: Annotated[MetadataPatch | None, Field(description="Merged by key; null removes a key.")] = None
    initial_events: Annotated[list[InitialEvent], Field(max_length=MAX_INITIAL_EVENTS, default_factory=list)]


def parse_fork_point(body: SessionFork) -> ForkPoint:
    if body.at_event_id is not None and body.at_position is not None:
        raise InvalidRequest(
            "at_position: cannot be combined with at_event_id",
            field="at_position",
            help_text="Send one of the two, or neither.",
        )
    return ForkPoint(event_id=body.at_event_id, position=body.at_position)


def make_fork_update(
    body: SessionFork, agent: JsonObject | None, *, default_harness: str
) -> Callable[[Session], Session]:
    """Returns the function that derives the fork from its parent. `agent` is a snapshot of the agent that the body
    names.
    """

    def change(parent: Session) -> Session:
        chosen = parent.agent if agent is None else agent
        if "model" in body.model_fields_set:
            chosen = {**chosen, "model": normalise_model(body.model)}
        _check_harness(parent.agent.get("harness") or default_harness, chosen.get("harness") or default_harness)
        return replace(
            parent,
            agent=chosen,
            title=body.title if "title" in body.model_fields_set else parent.title,
            metadata=merge_metadata(parent.metadata, body.metadata or {}),
        )

    return change


def _check_harness(old: object, new: object) -> None:
    if old != new:
        raise InvalidRequest(
            f"agent: uses the harness {new!r}, but this session uses {old!r}",
            field="agent",
            help_text="A fork must use its parent's harness. Choose an agent with the same harness.",
        )
