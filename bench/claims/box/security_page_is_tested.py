"""Every sentence about boundaries in docs/security.md is tied to a tested attempt, and every attempt is listed there.

The attempts are those that box-1 makes. The page names each of them exactly once, and no others. It also has a threat
model and a list of what is not protected.
"""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Final

from bench.prove.figure import Figure
from bench.support.escape import attempt, security_page_parser, suite

PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "security.md"
_MIN_ATTEMPTS: Final = 60


async def prove(quick: bool) -> Figure:  # noqa: ARG001, FBT001 - every claim's signature; it takes no time
    security_page = security_page_parser.parse_page(await asyncio.to_thread(PAGE.read_text))
    known = attempt.attempt_names(suite.ATTEMPTS)
    untied = security_page.find_sentences_without_attempt(known)
    wrong = sorted(
        (Counter(known) - Counter(security_page.list_named_attempts(known)))
        + (Counter(security_page.list_named_attempts(known)) - Counter(known))
    )
    sentences, named = len(security_page.sentences), len(known) - len(set(known) & set(wrong))
    summary = (
        f"{sentences} sentences about boundaries, {len(untied)} of them tied to no attempt; "
        f"{named} of {len(known)} attempts named exactly once; {len(security_page.unprotected)} items "
        f"listed as not protected"
    )
    if wrong:
        summary = f"different from the suite: {', '.join(wrong)}. {summary}"
    return Figure(
        headline=f"{sentences - len(untied)} of {sentences} sentences are tied to attempts, {named} of {len(known)} "
        "attempts named",
        summary=summary,
        holds=not untied
        and not wrong
        and len(known) >= _MIN_ATTEMPTS
        and bool(security_page.threats and security_page.unprotected),
        details={
            "sentences": len(security_page.sentences),
            "attempts": len(known),
            "unprotected": len(security_page.unprotected),
        },
    )
