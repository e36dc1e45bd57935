"""Client methods for permission rules: read and update the organisation's policy, import a settings file, and evaluate
proposed rules against past calls.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from footplate.client.pagination import drop_none
from footplate.client.response_models import ImportedRules, Policy, PolicyExplanation, PolicyReplay
from footplate.client.transport import Transport

_PATH = "/v1/policies"


class Policies:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def retrieve(self) -> Policy:
        return Policy.model_validate(await self._transport.get(_PATH))

    async def update(
        self,
        *,
        permissions: Mapping[str, Any] | None = None,
        approvals: Mapping[str, Any] | None = None,
        replaces: Policy | None = None,
    ) -> Policy:
        """Replaces `permissions` or `approvals`; one that is None is unchanged. The key needs the right role. With
        `replaces`, the change is refused (409) if the stored policy is no longer this one.
        """
        body = drop_none(permissions=permissions, approvals=approvals)
        if replaces is not None:
            body["expected_updated_at"] = replaces.wire()["updated_at"]
        return Policy.model_validate(await self._transport.post(_PATH, body))

    async def read(self, settings: Mapping[str, Any]) -> ImportedRules:
        """Converts the rules of a `.claude/settings.json`. Nothing is stored."""
        return ImportedRules.model_validate(await self._transport.post(f"{_PATH}/import", {"settings": settings}))

    async def explain(self, tool: str, tool_input: Mapping[str, Any], **scope: str | None) -> PolicyExplanation:
        """Returns what the gate would decide about a call, and why. `scope` is a `session_id`, or an `agent_id` and a
        `project_id` of a new session.
        """
        body = {"tool": tool, "input": {**tool_input}, **drop_none(**scope)}
        return PolicyExplanation.model_validate(await self._transport.post(f"{_PATH}/explain", body))

    async def replay(self, permissions: Mapping[str, Any], **fields: Any) -> AsyncIterator[PolicyReplay]:
        """Yields the result in pages, newest calls first. `fields` are further fields; `limit` is the page size."""
        body = {"permissions": permissions, **{name: value for name, value in fields.items() if value is not None}}
        while True:
            page = PolicyReplay.model_validate(await self._transport.post(f"{_PATH}/replay", body))
            yield page
            if page.next_page is None:
                return
            body["page"] = page.next_page
