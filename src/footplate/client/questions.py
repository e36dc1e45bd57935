"""Client methods for questions: list those that agents ask, across all sessions, and answer them."""

from collections.abc import Mapping
from typing import TypeAlias

from footplate.client.pagination import Pages
from footplate.client.response_models import Event, Question
from footplate.client.transport import Transport

Reply: TypeAlias = Mapping[str, str | list[str]]


class Questions:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, limit: int | None = None, session_id: str | None = None) -> Pages[Question]:
        """Lists pending questions, oldest first."""
        return Pages(self._transport, "/v1/questions", Question, {"limit": limit, "session_id": session_id})

    async def retrieve(self, event_id: str) -> Question:
        return Question.model_validate(await self._transport.get(f"/v1/questions/{event_id}"))

    async def send_reply(self, event_id: str, reply: Reply) -> Event:
        """Answers a question. `reply` has, for each question's text, a label, a list of labels or a free text."""
        response = await self._transport.post(f"/v1/questions/{event_id}/answer", {"answers": {**reply}})
        return Event.model_validate(response["data"][0])
