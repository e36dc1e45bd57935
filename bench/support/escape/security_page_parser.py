"""Parses docs/security.md: its sentences, and the attempts that show each of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

THREATS: Final = "## Who attacks whom"
BOUNDARIES: Final = "## The boundaries"
UNPROTECTED: Final = "## What is not protected"
_NAME: Final = re.compile(r"`([a-z0-9-]+)`")
_ITEM: Final = re.compile(r"^- .*?(?=^- |^#|^$|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class SecurityPage:
    threats: str
    sentences: Sequence[str]
    """Sentences about boundaries, each an item of a list."""
    unprotected: Sequence[str]

    def find_sentences_without_attempt(self, attempts: Sequence[str]) -> list[str]:
        """Returns the sentences that name no attempt."""
        return [item for item in self.sentences if not set(attempts) & set(_NAME.findall(item))]

    def list_named_attempts(self, attempts: Sequence[str]) -> list[str]:
        """Returns the named attempts, with repetitions, and names that only look like attempts."""
        found = [name for item in self.sentences for name in _NAME.findall(item)]
        return [name for name in found if "-" in name or name in attempts]


def parse_page(text: str) -> SecurityPage:
    before, _, after = text.partition(BOUNDARIES)
    boundaries, _, unprotected = after.partition(UNPROTECTED)
    return SecurityPage(
        threats=before.partition(THREATS)[2].strip(),
        sentences=_ITEM.findall(boundaries),
        unprotected=_ITEM.findall(unprotected),
    )
