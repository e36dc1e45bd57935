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

from bench.support.escape import backends, suite
from bench.support.escape.ground import Ground, bring_up_loopback, new_directory

OWN_NETWORK: Final = "own-network"
IN: Final = "in="


async def main(wanted: list[str]) -> None:
    if OWN_NETWORK in wanted:
        bring_up_loopback()
    quick = "quick" in wanted
    only = {word.removeprefix(IN) for word in wanted if word.startswith(IN)}
    names = {word for word in wanted if word not in {"quick", OWN_NETWORK} and not word.startswith(IN)}
    chosen = [attempt for attempt in suite.ATTEMPTS if not names or attempt.name in names]
    root = new_directory("footplate-escape-trees-")
    try:
        async with Ground.open(own_network=OWN_NETWORK in wanted) as ground:
            os.environ["FOOTPLATE_CANARY_KEY"] = ground.token("worker variable")
            places = {backends.CONTROL: backends.unsandboxed, **backends.attacked()}
            for name, opened in places.items():
                if only and name not in only:
                    continue
                place = root / name.replace(" ", "-")
                place.mkdir()
                attempts = suite.controlled(chosen) if name == backends.CONTROL else chosen
                if quick:
                    attempts = suite.sample(attempts, every=4 if name == "sandbox" else 16)
                async with opened(place) as backend:
                    async for outcome in suite.run_all(backend, ground, attempts):
                        print(json.dumps(dataclasses.asdict(outcome)), flush=True)
    finally:
        await asyncio.to_thread(shutil.rmtree, root)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
