"""Writes docs/evidence.md from the claims and their stored results. `--check` fails if the page is out of date."""

import sys
from collections.abc import Mapping
from itertools import groupby
from typing import Final

from bench.generated_file import write_or_check
from bench.prove.figure import MAX_HEADLINE_LENGTH
from bench.prove.loaded_files import ROOT
from bench.prove.registry import Claim, claims
from bench.prove.results import Result, load_result

PAGE: Final = ROOT / "docs" / "evidence.md"
GROUPS: Final = {
    "core": "Durable core",
    "door": "API, SDKs and command line",
    "box": "Sandboxes and containers",
    "claude": "Claude Code",
    "trees": "Working trees",
    "gate": "Rules, approvals and hooks",
    "guard": "Attacks on a running server",
    "dash": "The dashboard and signing in",
    "fast": "Speed",
    "plain": "Names, English and evidence",
    "ready": "Ready for a team",
    "steps": "Steps, feeds, questions and outputs",
    "triggers": "Webhooks, schedules and triggers",
    "seeds": "Requirements",
    "deploy": "Operations",
    "ci": "CI",
}
_HEAD: Final = """\
# Evidence

Every claim about Footplate is a command that you can run yourself. This page lists the claims, the figure of the last
full run, and whether the code has changed since.

- `just prove` with the key or the name of a claim runs it at full size. It prints the figure last and exits with 0 only
  if the claim holds. Some claims take an hour.
- With `QUICK=1` it runs a small sample. CI runs some samples; `just samples` runs all of them.
- **current** means that every file which the run loaded is the same today. **code changed since** means that at least
  one of them is different, or that the run did not record them. The claim may still hold: run it again.
- The date links to the full result: all figures, the commit, the number of cores, and the hash of each file.

`just evidence` writes this page.
"""
_TABLE: Final = "| claim | command | last full run | date | commit | code |\n|---|---|---|---|---|---|\n"


def render() -> str:
    sections = [
        f"\n## {GROUPS[group]}\n\n{_TABLE}{''.join(_row(claim, load_result(claim.key)) for claim in members)}"
        for group, members in groupby(claims(), lambda claim: claim.group)
    ]
    return _HEAD + "".join(sections)


def _row(claim: Claim, result: Result | None) -> str:
    command = f"`just prove {claim.key}`<br>`{claim.name}`"
    if result is None:
        return f"| {claim.title} | {command} | not run at full size yet | | | |\n"
    figure = result.headline if result.holds else f"**does not hold:** {result.headline}"
    date = f"[{result.date}](../bench/results/{claim.key}.json)"
    state = "current" if result.is_current() else "code changed since"
    return f"| {claim.title} | {command} | {figure} | {date} | {result.commit or 'not recorded'} | {state} |\n"


def parse_states(page: str) -> Mapping[str, str]:
    """Returns what a generated page says about the code of each claim that has a result, by key."""
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if "](../bench/results/" in line]
    return {row[1].split("`")[1].removeprefix("just prove "): row[-1] for row in rows}


def find_long_headlines() -> list[str]:
    results = [result for claim in claims() if (result := load_result(claim.key))]
    return [
        f"The figure of {result.claim} has more than {MAX_HEADLINE_LENGTH} words: {result.headline!r}."
        for result in results
        if len(result.headline.split()) > MAX_HEADLINE_LENGTH
    ]


def main() -> None:
    if problems := find_long_headlines():
        sys.exit("\n".join(problems))
    write_or_check(PAGE, render(), recipe="evidence")


if __name__ == "__main__":
    main()
