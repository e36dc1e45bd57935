"""Runs one attack of this directory against this checkout.

    PYTHONPATH=. python bench/support/guard/run_attack.py NAME

An attack is a module with `async def attack() -> str | None`, which returns what the attacker achieved in one sentence,
or None. The last line of the output is JSON: {"achieved": …}.
"""

import asyncio
import importlib.util
import json
import sys
from pathlib import Path


def main() -> None:
    name = sys.argv[1]
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        sys.exit(f"There is no attack {name!r}.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    achieved = asyncio.run(module.attack())
    print(json.dumps({"achieved": achieved}), flush=True)


if __name__ == "__main__":
    main()
