"""Forks on the wire: where, and what is other than in the parent."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Final

from pydantic import Field

from footplate.api.wire.agents import Model, model_object
from footplate.api.wire.base import KEPT, Body, Id, MetadataPatch, patched
from footplate.api.wire.events import MAX_INITIAL_EVENTS
from footplate.api.wire.sessions import AgentChoice, InitialEvent, Title
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.services import ForkPoint
from footplate.domain.turns import Session

_MAX_POSITION: Final = 2**63 - 1


class SessionFork(Body):
    """Without a place it is the newest event. What is left out is as in the parent."""

    at_event_id: Annotated[
        Id | None,
        Field(description="The fork's history ends with this event; with one that was queued, where it was taken up."),
    ] = None
    at_position: Annotated[
        int | None,
        Field(ge=1, le=_MAX_POSITION, description="Instead: the position of the event, as streams have it in `id`."),
    ] = None
    agent: AgentChoice | None = None
    model: Model = KEPT
    environment_id: Id | None = None
    title: Title | None = None
    metadata: Annotated[MetadataPatch | None, Field(description="Patched by key; null drops a key.")] = None
    initial_events: Annotated[list[InitialEvent], Field(max_length=MAX_INITIAL_EVENTS, default_factory=list)]


def point_of(body: SessionFork) -> ForkPoint:
    if body.at_event_id is not None and body.at_position is not None:
        raise InvalidRequest(
            "at_position: is given beside at_event_id",
            field="at_position",
            help_text="Give one of the two, or neither.",
        )
    return ForkPoint(event_id=body.at_event_id, position=body.at_position)


def change_of(body: SessionFork, agent: JsonObject | None, *, default_harness: str) -> Callable[[Session], Session]:
    """`agent`: a snapshot of the one that the body names."""

    def change(parent: Session) -> Session:
        chosen = parent.agent if agent is None else agent
        if "model" in body.model_fields_set:
            chosen = {**chosen, "model": model_object(body.model)}
        _check_harness(parent.agent.get("harness") or default_harness, chosen.get("harness") or default_harness)
        return replace(
            parent,
            agent=chosen,
            title=body.title if "title" in body.model_fields_set else parent.title,
            metadata=patched(parent.metadata, body.metadata or {}),
        )

    return change


def _check_harness(old: object, new: object) -> None:
    if old != new:
        raise InvalidRequest(
            f"agent: its harness is {new!r}, and the conversation of this session is that of {old!r}",
            field="agent",
            help_text="A fork goes on with its parent's harness. Choose an agent that has the same one.",
        )
