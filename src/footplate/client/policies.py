"""Rules: the organisation's, those of a settings file, and what others would have said of calls that were made."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from footplate.client.listing import given
from footplate.client.models import ImportedRules, Policy, PolicyReplay
from footplate.client.transport import Transport

_PATH = "/v1/policies"


class Policies:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def retrieve(self) -> Policy:
        return Policy.model_validate(await self._transport.get(_PATH))

    async def update(
        self, *, permissions: Mapping[str, Any] | None = None, approvals: Mapping[str, Any] | None = None
    ) -> Policy:
        """Each is written as a whole; what is not given stays. Takes a key that has the role for it."""
        body = given(permissions=permissions, approvals=approvals)
        return Policy.model_validate(await self._transport.post(_PATH, body))

    async def read(self, settings: Mapping[str, Any]) -> ImportedRules:
        """The rules of a `.claude/settings.json`; nothing is stored."""
        return ImportedRules.model_validate(await self._transport.post(f"{_PATH}/import", {"settings": settings}))

    async def replay(self, permissions: Mapping[str, Any], **asked: Any) -> AsyncIterator[PolicyReplay]:
        """Page by page, the newest calls first. `asked` are further fields; `limit` is of a page."""
        body = {"permissions": permissions, **{name: value for name, value in asked.items() if value is not None}}
        while True:
            page = PolicyReplay.model_validate(await self._transport.post(f"{_PATH}/replay", body))
            yield page
            if page.next_page is None:
                return
            body["page"] = page.next_page
