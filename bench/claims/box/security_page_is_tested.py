"""The page on security is true: threat model, boundaries, what is not protected, each sentence tied to an attempt.

The attempts are those of box-1, which makes them. The page names every one of them once, and no other.
"""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Final

from bench.prove.figure import Figure
from bench.support.escape import attempt, page, suite

PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "security.md"
_FEWEST: Final = 60


async def prove(quick: bool) -> Figure:  # noqa: ARG001, FBT001 - every claim's signature; it takes no time
    read = page.read(await asyncio.to_thread(PAGE.read_text))
    known = attempt.names(suite.ATTEMPTS)
    untied = read.untied(known)
    wrong = sorted((Counter(known) - Counter(read.named(known))) + (Counter(read.named(known)) - Counter(known)))
    text = (
        f"{len(read.sentences)} sentences about boundaries, {len(untied)} of them tied to no attempt; "
        f"{len(known) - len(set(known) & set(wrong))} of {len(known)} attempts named exactly once; "
        f"{len(read.unprotected)} things said not to be protected"
    )
    if wrong:
        text = f"not as in the suite: {', '.join(wrong)}. {text}"
    return Figure(
        text=text,
        holds=not untied and not wrong and len(known) >= _FEWEST and bool(read.threats and read.unprotected),
        details={"sentences": len(read.sentences), "attempts": len(known), "unprotected": len(read.unprotected)},
    )
