"""Lowers the CPU weight of a sandbox that is throttled at its CPU quota, so that other turns run first.

A CPU quota limits how much time a control group gets, but not when. Many busy processes can use all processors at the
start of each period, and other turns then have to wait. With a low weight, other turns get the processors first. While
processors are idle, a low weight has no effect.
"""

import asyncio
import time
from typing import Final

from footplate.environments.isolation.cgroups import Cgroup

_CHECK_INTERVAL: Final = 0.25
_LOW_SHARE: Final = 0.1
_LOW_WEIGHT_SECONDS: Final = 10.0
"""Seconds after the group was last throttled. A group with a low weight gets less time and is throttled less, which
must not restore its weight at once.
"""


async def lower_weight_while_throttled(group: Cgroup) -> None:
    """Adjusts the weight until the group is gone or the task is cancelled. The reads and writes go to the kernel, not
    to a disk, so they do not block.
    """
    try:
        before, until = group.throttle_count(), 0.0
        while True:
            await asyncio.sleep(_CHECK_INTERVAL)
            count, now = group.throttle_count(), time.monotonic()
            if count > before:
                if not until:
                    group.set_cpu_weight(_LOW_SHARE)
                before, until = count, now + _LOW_WEIGHT_SECONDS
            elif until and now >= until:
                group.set_cpu_weight(1)
                until = 0.0
    except OSError:
        return
