"""Changes one queue at random, as several clients do at the same time."""

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from footplate.domain.errors import Conflict, NotFound
from footplate.domain.sessions.steps import OnFailure

ADD: Final = 3
"""How much more often a step is added than moved, edited or removed."""


class QueueAccess(Protocol):
    """The changes that a client can make. Each raises `Conflict` or `NotFound` if it is refused."""

    async def add(self, step: dict[str, Any], before: str | None) -> str:
        """Add a step and return its id."""

    async def edit(self, step_id: str, fields: dict[str, Any]) -> None: ...
    async def move(self, step_id: str, before: str | None) -> None: ...
    async def remove(self, step_id: str) -> None: ...
    async def retry(self, step_id: str) -> str:
        """Repeat a step and return the id of the copy."""

    async def change_playback(self, action: str) -> None: ...


class RandomChanges:
    def __init__(self, access: QueueAccess, chance: random.Random, command: Callable[[str, bool], str]) -> None:
        """`command` returns the shell command of a step, by its name and whether it fails."""
        self._access = access
        self._chance = chance
        self._command = command
        self._ids: list[str] = []
        self.made = 0
        self.refused = 0

    async def act(self, *more: Callable[[], Awaitable[None]]) -> None:
        """Make one change, or one of `more`."""
        actions: Sequence[Callable[[], Awaitable[None]]] = [
            *[self._add] * ADD, self._edit, self._move, self._remove, self._retry,
            *map(self._playback, ("play", "pause", "next")), *more,
        ]  # fmt: skip
        try:
            await self._chance.choice(actions)()
        except (Conflict, NotFound):
            self.refused += 1
        else:
            self.made += 1

    async def _add(self) -> None:
        name = f"s{len(self._ids)}_{self._chance.randrange(1000)}"
        step = {
            "kind": "shell",
            "name": name,
            "command": self._command(name, self._chance.random() < 0.3),
            "on_failure": self._chance.choice([policy.value for policy in OnFailure]),
            "max_attempts": 2,
        }
        before = self._pick() if self._chance.random() < 0.3 else None
        self._ids.append(await self._access.add(step, before))

    async def _edit(self) -> None:
        await self._access.edit(self._pick(), {"on_failure": "continue"})

    async def _move(self) -> None:
        step_id, before = self._pick(), self._chance.choice([None, self._pick()])
        if step_id != before:
            await self._access.move(step_id, before)

    async def _remove(self) -> None:
        await self._access.remove(self._pick())

    async def _retry(self) -> None:
        self._ids.append(await self._access.retry(self._pick()))

    def _playback(self, action: str) -> Callable[[], Awaitable[None]]:
        return lambda: self._access.change_playback(action)

    def _pick(self) -> str:
        return self._chance.choice(self._ids) if self._ids else "step_00000000000000000000000000"
