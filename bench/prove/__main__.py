"""`python -m bench.prove CLAIM…`: runs claims or groups of claims, prints each figure, and exits with 0 only if all
hold.

With QUICK=1 each claim takes a small sample and stores nothing. A full run stores its result in bench/results. Several
full runs get a process each, so that the result of one does not include the modules of another.
"""

import asyncio
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence

from bench.prove import registry
from bench.prove.figure import CRASHED_HEADLINE, NOT_HELD_HEADLINE, Figure, NotHeld
from bench.prove.loaded_files import LoadedFiles, hash_files
from bench.prove.registry import Claim
from bench.prove.results import Result, write_result
from bench.support import cluster, forked_program


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: python -m bench.prove CLAIM…, for example core-1, kill-any-process, core or all")
    selected: list[Claim] = []
    for wanted in sys.argv[1:]:
        found = registry.select(wanted)
        if not found:
            known = ", ".join(f"{claim.key} ({claim.name})" for claim in registry.claims())
            sys.exit(f"There is no claim {wanted!r}. Use one of: {known}.")
        selected += found
    quick = os.environ.get("QUICK", "") not in {"", "0"}
    if quick:
        hold = asyncio.run(run_samples(selected))
    elif len(selected) == 1:
        hold = asyncio.run(run_full_size(selected[0]))
    else:
        commands = [[sys.executable, "-m", "bench.prove", claim.key] for claim in selected]
        exit_codes = [subprocess.run(command, check=False).returncode for command in commands]
        hold = not any(exit_codes)
    sys.exit(0 if hold else 1)


async def run_samples(selected: Sequence[Claim]) -> bool:
    lines = []
    async with cluster.share_stack(enabled=len(selected) > 1), forked_program.preloaded(enabled=True):
        for claim in selected:
            print(f"\n== {claim.key} (quick)", flush=True)
            began = time.monotonic()
            figure = await _run(claim, quick=True)
            lines.append(_describe(claim, figure, time.monotonic() - began))
            reason = "" if figure.holds else f"{figure.summary}\n"
            print(f"{claim.title}\n{reason}{lines[-1]}", flush=True)
    if len(lines) > 1:
        print("\n" + "\n".join(lines), flush=True)
    return all(line.startswith("holds") for line in lines)


async def run_full_size(claim: Claim) -> bool:
    print(f"\n== {claim.key}", flush=True)
    began = time.monotonic()
    with LoadedFiles() as loaded:
        figure = await _run(claim, quick=False)
    seconds = time.monotonic() - began
    code = hash_files(loaded.paths)
    write_result(Result.create(claim.key, claim.title, figure, seconds=seconds, code=code))
    print(f"{claim.title}\n{figure.summary}\n{_describe(claim, figure, seconds)}", flush=True)
    return figure.holds


def _describe(claim: Claim, figure: Figure, seconds: float) -> str:
    return f"{'holds' if figure.holds else 'FAILS'}  {claim.key}: {figure.headline}  ({seconds:.0f} s)"


async def _run(claim: Claim, *, quick: bool) -> Figure:
    try:
        return await claim.load()(quick)
    except NotHeld as finding:
        return Figure(headline=NOT_HELD_HEADLINE, summary=str(finding), holds=False)
    except Exception as error:  # noqa: BLE001 - the other claims still run
        traceback.print_exc()
        return Figure(headline=CRASHED_HEADLINE, summary=f"{type(error).__name__}: {error}", holds=False)


if __name__ == "__main__":
    main()
