"""A turn that wants more of the processors than it may have gives way to those that do not.

A limit says how much time a group gets, not when: many busy processes take all processors at once for the first part of
each period, and whoever computes beside them waits that long. So whoever is stopped at its limit counts little for a
while. It loses nothing by that as long as processors are idle.
"""

import asyncio
import time
from typing import Final

from footplate.environments.sandbox.cgroups import Cgroup

_LOOK_EVERY: Final = 0.25
_SHARE: Final = 0.1
_FOR: Final = 10.0
"""Beyond the last time it was stopped: one that gives way gets less, and would soon look as if it wanted less."""


async def give_way(group: Cgroup) -> None:
    """As often as it has to, until the group is gone or this is cancelled. What is read and written is no disk's."""
    try:
        before, until = group.throttled(), 0.0
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            count, now = group.throttled(), time.monotonic()
            if count > before:
                if not until:
                    group.weigh(_SHARE)
                before, until = count, now + _FOR
            elif until and now >= until:
                group.weigh(1)
                until = 0.0
    except OSError:
        return
