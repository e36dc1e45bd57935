"""The first token comes at most 25 ms later than with bare pydantic-ai in an open session, and 45 ms in a new one."""

from typing import Final

from bench.prove.figure import Figure, time_limit
from bench.support.cluster import open_cluster
from bench.support.speed import first_token

_LIMITS: Final = first_token.Limits(open_ms=25, new_ms=45)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    async with open_cluster() as cluster:
        measured = await first_token.measure(
            cluster, _LIMITS, samples=4 if quick else 100, slack=time_limit(1.0, quick=quick)
        )
    segments = measured.details["segments_p50_ms"]
    assert isinstance(segments, dict)
    for side, found in segments.items():
        assert isinstance(found, dict)
        print(f"{side:5}", ", ".join(f"{name} +{ms} ms" for name, ms in found.items()))
    added_open, added_new = measured.figures["added_open_ms"], measured.figures["added_new_ms"]
    return Figure(
        headline=f"first token {added_open:.0f} ms later in an open session (limit {_LIMITS.open_ms:g}), "
        f"{added_new:.0f} new ({_LIMITS.new_ms:g})",
        summary=measured.text,
        holds=measured.holds,
        details=measured.details,
    )
