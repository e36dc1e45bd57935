"""Client methods for approvals and questions: list the tool calls and questions that wait for a person, across all
sessions, and decide or answer them.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from footplate.client.pagination import Pages, drop_none
from footplate.client.response_models import Approval, Event, Question
from footplate.client.transport import Transport

Reply: TypeAlias = Mapping[str, str | list[str]]


class Approvals:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, limit: int | None = None, session_id: str | None = None) -> Pages[Approval]:
        """Lists pending approvals, oldest first."""
        return Pages(self._transport, "/v1/approvals", Approval, {"limit": limit, "session_id": session_id})

    async def retrieve(self, event_id: str) -> Approval:
        return Approval.model_validate(await self._transport.get(f"/v1/approvals/{event_id}"))

    async def allow(
        self,
        approval: Approval,
        *,
        updated_input: Mapping[str, Any] | None = None,
        session_rule: str | None = None,
    ) -> Event:
        """Allows the call. `updated_input` replaces its input; `session_rule` also allows later calls that match it."""
        return await self._send_decision(approval, "allow", updated_input=updated_input, session_rule=session_rule)

    async def deny(self, approval: Approval, message: str | None = None) -> Event:
        return await self._send_decision(approval, "deny", deny_message=message)

    async def _send_decision(self, approval: Approval, result: Literal["allow", "deny"], **fields: Any) -> Event:
        decision = {
            "type": "user.tool_confirmation",
            "tool_use_id": approval.id,
            "result": result,
            **drop_none(**fields),
        }
        response = await self._transport.post(f"/v1/sessions/{approval.session_id}/events", {"events": [decision]})
        return Event.model_validate(response["data"][0])


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
