"""The clock that leases use. It keeps running while the machine sleeps or the process is suspended."""

import time


def lease_clock() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
