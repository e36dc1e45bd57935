"""`python -m bench.support.escape [quick] [own-network] [in=BACKEND…] [NAME…]`: runs the suite in its own process.

Prints one JSON line for each attempt. With its own network namespace, the host also has the metadata addresses.
"""

import asyncio
import dataclasses
import json
import os
import shutil
import sys
from typing import Final

from bench.support.escape import attacked_backends, suite
from bench.support.escape.host_fixture import HostFixture, enable_loopback, new_directory

OWN_NETWORK: Final = "own-network"
IN: Final = "in="


async def main(arguments: list[str]) -> None:
    if OWN_NETWORK in arguments:
        enable_loopback()
    quick = "quick" in arguments
    only_backends = {argument.removeprefix(IN) for argument in arguments if argument.startswith(IN)}
    names = {name for name in arguments if name not in {"quick", OWN_NETWORK} and not name.startswith(IN)}
    chosen = [attempt for attempt in suite.ATTEMPTS if not names or attempt.name in names]
    root = new_directory("footplate-escape-trees-")
    try:
        async with HostFixture.create(own_network=OWN_NETWORK in arguments) as host:
            os.environ["FOOTPLATE_CANARY_KEY"] = host.token("worker variable")
            backend_factories = {
                attacked_backends.CONTROL: attacked_backends.unsandboxed,
                **attacked_backends.attacked_backends(),
            }
            for name, opened in backend_factories.items():
                if only_backends and name not in only_backends:
                    continue
                directory = root / name.replace(" ", "-")
                directory.mkdir()
                attempts = suite.select_controlled(chosen) if name == attacked_backends.CONTROL else chosen
                if quick:
                    attempts = suite.sample(attempts, every=4 if name == "sandbox" else 16)
                async with opened(directory) as backend:
                    async for outcome in suite.run_all(backend, host, attempts):
                        print(json.dumps(dataclasses.asdict(outcome)), flush=True)
    finally:
        await asyncio.to_thread(shutil.rmtree, root)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
