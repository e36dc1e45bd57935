"""The process of one Python hook: limits first, then the hook, then its answer. What it prints itself is no answer."""

import json
import os
import resource
import signal
import sys
from importlib.metadata import entry_points

from footplate.gate.hooks import GROUP


def main() -> int:
    limits = json.loads(sys.argv[1])
    if sys.platform == "linux":  # elsewhere it is not kept to, or not taken at all
        resource.setrlimit(resource.RLIMIT_AS, (limits["memory"], limits["memory"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(limits["seconds"])  # also when the worker that asked is gone
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    given = json.load(sys.stdin)
    found = [each for each in entry_points(group=GROUP) if each.name == given["name"]]
    if not found:
        sys.stderr.write(f"No hook {given['name']!r} is installed on this worker (entry points {GROUP}).")
        return 1
    try:
        answer = found[0].load()(given["told"], given["options"])
        with answers:
            answers.write(json.dumps(answer or {}))
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the answer's place to say so
        sys.stderr.write(f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
