"""The api costs at most twice what a bare app costs with the same SQL; 2,000 idle streams take it less than 300 MB.

`bench/support/overhead/answers.py` says what is compared with what, `idle.py` how memory is counted.
"""

from typing import Final

from bench.prove.figure import Figure
from bench.support.cluster import open_cluster
from bench.support.overhead import answers, idle

_KEEPALIVE: Final = 15.0
_QUICK_KEEPALIVE: Final = 1.0
_SANITY: Final = 6.0


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    idle.allow_many_connections()
    keepalive = _QUICK_KEEPALIVE if quick else _KEEPALIVE
    settings = {
        "FOOTPLATE_KEEPALIVE": str(keepalive),
        "FOOTPLATE_FAILPOINTS": "",
        "FOOTPLATE_CONNECTIONS_PER_ADDRESS": "4000",
        "FOOTPLATE_STREAMS_PER_KEY": "4000",
    }
    async with open_cluster(apis=1, workers=0, environment=settings) as cluster:
        if quick:
            speed = await answers.measure(cluster, samples=25, most=_SANITY)
            streams = await idle.measure(cluster, streams=100, keepalive=keepalive, rounds=1)
        else:
            speed = await answers.measure(cluster, samples=500)
            streams = await idle.measure(cluster, streams=2_000, keepalive=keepalive, rounds=2)
    return Figure(
        text=f"{speed.text}; {streams.text}",
        holds=speed.holds and streams.holds,
        details={"answers": speed.details, "streams": streams.details},
    )
