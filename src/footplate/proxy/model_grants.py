"""Access tokens for model requests. Each turn has one token, which is valid while the turn runs and holds its lease."""

import asyncio
import hmac
import secrets
from typing import Final

from footplate.lease_clock import lease_clock

NAME_PREFIX: Final = "fpt"


class Grant:
    """Permission of one turn to send model requests. Created by `Grants.issue`."""

    def __init__(self, name: str, deadline: float, organisation: str | None = None) -> None:
        """`organisation`: the turn may also use its own connections, not only those that all organisations share."""
        self.name = name
        self.organisation = organisation
        self.token = f"{NAME_PREFIX}-{name}-{secrets.token_urlsafe(32)}"
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Completes when the turn ends. All work for the turn then stops."""
        self._deadline = deadline

    def renew(self, deadline: float) -> None:
        self._deadline = max(self._deadline, deadline)

    def pause(self) -> None:
        self._deadline = 0.0

    def end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    @property
    def is_valid(self) -> bool:
        return not self.ended.done() and lease_clock() < self._deadline

    def matches_token(self, token: str) -> bool:
        """Compares the token in constant time."""
        return hmac.compare_digest(token.encode(), self.token.encode())


class Grants:
    def __init__(self) -> None:
        self._active: dict[str, Grant] = {}

    def issue(self, deadline: float, organisation: str | None = None) -> Grant:
        grant = Grant(secrets.token_hex(8), deadline, organisation)
        self._active[grant.name] = grant
        return grant

    def revoke(self, grant: Grant) -> None:
        self._active.pop(grant.name, None)
        grant.end()

    def find(self, token: str) -> Grant | None:
        """Returns the grant of a running turn. `is_valid` tells whether its lease is valid.

        The lookup uses the name in the token, which is not secret. The rest is compared in constant time.
        """
        _, _, name = token.partition("-")
        grant = self._active.get(name.partition("-")[0])
        return grant if grant is not None and grant.matches_token(token) else None
