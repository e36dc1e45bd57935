"""Runs one session that asks questions, from its prompt to a check that each reply reached the model once."""

from typing import Any, Final

import anthropic

from bench.support.approvals.approval_case import ApprovalCase
from bench.support.approvals.call_scenarios import COLOURS, HARNESSES, QUESTION_TEXT, QUESTIONS, ReadCountingPipe
from bench.support.clients import TOOLSET, Client
from footplate.domain.policy.approvals import DECIDED_BY_TIMEOUT
from footplate.domain.sessions import events, questions

_FREE_TEXT: Final = "Neither: take blue."
BY_CLOCK: Final = f'The default applies: "{QUESTION_TEXT}"="{COLOURS[-1]}"'
"""The text for the model if the default of its question applies."""


async def create_agents(client: Client) -> dict[str, str]:
    """Creates one agent for each harness that can ask questions."""
    toolset = {**TOOLSET, "ask_user": True}
    return {harness: await client.agent(tools=[toolset], extra_body={"harness": harness}) for harness in HARNESSES}


class QuestionCase(ApprovalCase):
    """The decision on a question is the text that the model gets."""

    def expect_default(self, event_ids: list[str]) -> None:
        self._decisions |= dict.fromkeys(event_ids, BY_CLOCK)

    async def list_pending(self) -> list[str]:
        return await self._pending_approvals()

    async def _decide(self, event_id: str) -> None:
        """Answers a question twice, and then differently: through its route, or as clients of the reference API do."""
        reply = self._context.chance.choice([*COLOURS, _FREE_TEXT])
        is_route = self._context.chance.random() < 0.5
        fields = questions.result_fields(event_id, QUESTIONS["question"][0], {QUESTION_TEXT: reply})
        text = str(fields["content"][0]["text"]) if is_route else reply  # pyrefly: ignore[bad-index, unsupported-operation]
        self._decisions[event_id] = text
        first = await self._send_reply(event_id, reply, is_route=is_route)
        if await self._send_reply(event_id, reply, is_route=is_route) != first:
            self._record_fault(f"repeating the answer to {event_id} created another event")
        try:
            await self._send_reply(event_id, "Something else.", is_route=is_route)
            self._record_fault(f"a second, different answer to {event_id} was accepted")
        except anthropic.ConflictError:
            self._context.found.count["conflicts refused"] += 1

    async def _send_reply(self, event_id: str, reply: str, *, is_route: bool) -> str:
        client = self._context.client
        if not is_route:
            return await client.send_tool_result(self.session_id, event_id, reply)
        body: Any = await client.sdk.post(
            f"/v1/questions/{event_id}/answer", body={"answers": {QUESTION_TEXT: reply}}, cast_to=dict[str, Any]
        )
        return str(body["data"][0]["id"])

    async def _check_calls(self, decisions: dict[str, str], pipe: ReadCountingPipe | None = None) -> None:
        del pipe  # for other scenarios
        log = await self._read_log()
        asked = {event["id"]: event for event in log if event.get("question")}
        results = [event for event in log if event["type"] == events.USER_CUSTOM_TOOL_RESULT]
        if asked.keys() != decisions.keys() or len(results) != len(asked):
            self._record_fault(f"{len(decisions)} answers to {len(asked)} questions, {len(results)} results")
        requests = await self._read_requests()
        for event_id, text in decisions.items():
            self._context.found.approvals[self._scenario.harness] += 1
            self._context.found.count["by clock" if text == BY_CLOCK else "by a person"] += 1
            (result,) = [event for event in results if event["custom_tool_use_id"] == event_id] or [{}]
            if (result.get("answered_by") == DECIDED_BY_TIMEOUT) is not (text == BY_CLOCK):
                self._record_fault(f"{event_id} was answered by {result.get('answered_by')}")
            self._check_requests(str(asked.get(event_id, {}).get("call_id")), text, requests)

    def _check_requests(self, call_id: str, text: str, requests: list[list[dict[str, Any]]]) -> None:
        """Checks that every request has the result of the call at most once and unchanged, and the last one has it."""
        found = [[block for block in blocks if block.get("tool_use_id") == call_id] for blocks in requests]
        if any(len(blocks) > 1 for blocks in found):
            self._record_fault(f"a request has the answer to {call_id} twice")
        if any(text not in str(block["content"]) for blocks in found for block in blocks):
            self._record_fault(f"a request has another answer to {call_id}: {found}")
        if not found or not found[-1]:
            self._record_fault(f"the answer to {call_id} did not reach the model")

    async def _read_requests(self) -> list[list[dict[str, Any]]]:
        """Returns the content blocks of each model request of the session, oldest first."""
        bodies = [each["body"] for each in await self._context.cluster.model.requests(self.script) if each["body"]]
        contents = [[message["content"] for message in body["messages"]] for body in bodies]  # pyrefly: ignore[bad-index, not-iterable]
        return [
            [block for content in each if isinstance(content, list) for block in content if isinstance(block, dict)]
            for each in contents
        ]
