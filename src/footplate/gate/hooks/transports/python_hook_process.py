"""The program that runs one Python hook in its own process: sets resource limits, calls the hook and writes the result.

Text that the hook prints goes to stderr and is not part of the result.
"""

import json
import os
import resource
import signal
import sys
from importlib.metadata import entry_points

from footplate.gate.hooks.hook_config import ENTRY_POINT_GROUP


def main() -> int:
    limits = json.loads(sys.argv[1])
    if sys.platform == "linux":  # other systems ignore or reject this limit
        resource.setrlimit(resource.RLIMIT_AS, (limits["memory"], limits["memory"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(limits["seconds"])  # ends the process even if the worker is gone
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    request = json.load(sys.stdin)
    found = [each for each in entry_points(group=ENTRY_POINT_GROUP) if each.name == request["name"]]
    if not found:
        sys.stderr.write(
            f"No hook {request['name']!r} is installed on this worker (entry point group {ENTRY_POINT_GROUP})."
        )
        return 1
    try:
        result = found[0].load()(request["told"], request["options"])
        with output:
            output.write(json.dumps(result or {}))
    except BaseException as error:  # noqa: BLE001 - every failure is reported as the result
        sys.stderr.write(f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
