"""Finds the claims: every module of this package whose name is a group and a number."""

import importlib
import pkgutil
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bench import prove
from bench.prove.figure import Figure

Prove = Callable[[bool], Awaitable[Figure]]

_NAME: Final = re.compile(r"(?P<group>[a-z]+)_(?P<number>\d+)")


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    group: str
    number: int

    @property
    def key(self) -> str:
        return f"{self.group}-{self.number}"

    @property
    def module(self) -> str:
        return f"bench.prove.{self.group}_{self.number}"

    def load(self) -> tuple[str, Prove]:
        """Its claim, which is the first line of its docstring, and its proof."""
        module = importlib.import_module(self.module)
        title = (module.__doc__ or "").strip().splitlines()[0]
        return title, module.prove


def claims() -> Sequence[Claim]:
    names = (_NAME.fullmatch(info.name) for info in pkgutil.iter_modules(prove.__path__))
    return sorted(Claim(name["group"], int(name["number"])) for name in names if name)


def select(wanted: str) -> Sequence[Claim]:
    """`core-1`, the group `core`, or `all`. Empty when there is none of that name."""
    return [claim for claim in claims() if wanted in {"all", claim.group, claim.key}]
