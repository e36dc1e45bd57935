"""A request takes at most twice as long as in a bare app with the same SQL; 2,000 idle streams take under 300 MB.

The modules of `bench/support/overhead` describe the bare app and how memory is counted.
"""

from typing import Final

from bench.prove.figure import Figure
from bench.support.cluster import open_cluster
from bench.support.overhead import idle_streams, response_times

_KEEPALIVE: Final = 15.0
_QUICK_KEEPALIVE: Final = 1.0
_MAX_RATIO_QUICK: Final = 6.0


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    idle_streams.allow_many_connections()
    keepalive = _QUICK_KEEPALIVE if quick else _KEEPALIVE
    settings = {
        "FOOTPLATE_KEEPALIVE": str(keepalive),
        "FOOTPLATE_FAILPOINTS": "",
        "FOOTPLATE_CONNECTIONS_PER_ADDRESS": "4000",
        "FOOTPLATE_STREAMS_PER_KEY": "4000",
    }
    async with open_cluster(apis=1, workers=0, environment=settings) as cluster:
        if quick:
            speed = await response_times.measure(cluster, samples=25, max_ratio=_MAX_RATIO_QUICK)
            streams = await idle_streams.measure(cluster, streams=100, keepalive=keepalive, rounds=1)
        else:
            speed = await response_times.measure(cluster, samples=500)
            streams = await idle_streams.measure(cluster, streams=2_000, keepalive=keepalive, rounds=2)
    return Figure(
        headline=f"at most {speed.figures['ratio']:.2f} times a bare app; {streams.figures['streams']:,.0f} idle "
        f"streams take {streams.figures['mb']:.0f} MB",
        summary=f"{speed.text}; {streams.text}",
        holds=speed.holds and streams.holds,
        details={"answers": speed.details, "streams": streams.details},
    )
