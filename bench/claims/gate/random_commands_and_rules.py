"""For a million random commands and rules, the gate decides in under 1 ms (p99) and allows only what the rules allow.

Half of the commands come from a grammar that knows what they run and write; half are broken pieces of real commands.
Broken commands that are allowed run in bash, to see what they do. Times are CPU times, and all commands of a batch are
generated before the first one is evaluated, so that neither other work on the machine nor the generation counts.
"""

import asyncio
import gc
import os
import random
import secrets
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bench.prove.figure import Figure
from bench.support.bypass import corpus
from bench.support.generated_commands import bash_trace, command_grammar
from bench.support.generated_commands.damaged_commands import CommandDamager
from footplate.domain.json import Json
from footplate.domain.policy.permissions import Layer, PermissionOutcome
from footplate.gate.evaluation.shell_command_decision import decide_command
from footplate.gate.rules.layered_policy import Policy
from footplate.gate.rules.path_context import PathContext

_COMMANDS: Final = 1_000_000
_BATCH: Final = 10_000
_MAX_P99_US: Final = 1_000
_QUICK_FACTOR: Final = 10
"""The factor for the limit of a small sample."""
_PATH_CONTEXT: Final = PathContext(root="/work/tree", home="/home/dev")
_WRITABLE_DIRECTORIES: Final = frozenset({"src", "tests", "docs", "build"})
"""The directories that the everyday rules let commands write, besides logs; written down independently of the gate."""
_READERS: Final = frozenset({
    "ls", "cat", "head", "tail", "wc", "grep", "egrep", "fgrep", "rg", "find", "stat", "file", "du", "df", "diff",
    "cmp", "cut", "tr", "nl", "uniq", "sort", "basename", "dirname", "pwd", "echo", "printf", "true", "false", ":",
    "test", "which", "type", "date", "cd", "tree", "jq", "xxd", "od", "sed", "awk", "git", "id", "seq", "sleep",
    "uname", "whoami", "tar", "column", "set", "wait", "exit", "break", "continue", "return", "shift", "base64",
    "tac", "rev", "paste", "join", "comm", "realpath", "readlink", "strings", "expr", "groups", "arch", "nproc",
    "md5sum", "sha1sum", "sha256sum", "command", "python", "node", "jobs", "hexdump", "fold", "fmt",
})  # fmt: skip
"""Programs that only read; written down independently of the gate's own list."""


@dataclass(slots=True)
class _BatchResult:
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    microseconds: Counter[int] = field(default_factory=Counter)
    allowed: list[str] = field(default_factory=list)
    """Broken commands, which bash will run."""


class _KnownEffects(NamedTuple):
    """The effects of a command from the grammar, and the rules that apply to it."""

    rules: command_grammar.Rules
    truth: command_grammar.CommandEffects

    @property
    def is_permitted(self) -> bool:
        runs, writes = map(self.rules.permits, self.truth.runs), map(command_grammar.is_writable, self.truth.writes)
        return not self.truth.has_unknown_parts and all(runs) and all(writes)


class _Case(NamedTuple):
    command: str
    policy: Policy
    known_effects: _KnownEffects | None = None
    """None for a broken command, whose effects are unknown."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    batches, size, max_bash_runs = (2, 1_000, 100) if quick else (_COMMANDS // _BATCH, _BATCH, 5_000)
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    total = _BatchResult()
    # Two hardware threads of one core slow each other down: use one of them.
    with ProcessPoolExecutor(max(1, (os.cpu_count() or 1) // 2)) as pool:
        loop = asyncio.get_running_loop()
        work = [loop.run_in_executor(pool, _run_batch, seed + index, size) for index in range(batches)]
        for each in asyncio.as_completed(work):
            found = await each
            total.outcomes.update(found.outcomes)
            total.microseconds.update(found.microseconds)
            total.faults += found.faults
            total.allowed += found.allowed
    allowed = sorted(set(total.allowed) - set(corpus.load_everyday_commands()))
    sample = random.Random(seed).sample(allowed, min(max_bash_runs, len(allowed)))
    total.faults += await _check_in_bash(sample)
    return _figure(total, len(sample), _MAX_P99_US * (_QUICK_FACTOR if quick else 1))


def _run_batch(seed: int, size: int) -> _BatchResult:
    rng, breaker, found = random.Random(seed), CommandDamager(), _BatchResult()
    team = corpus.load_policy("everyday")
    cases = [_make_broken_case(breaker, rng, team) if index % 2 else _make_known_case(rng) for index in range(size)]
    gc.freeze()
    for case in cases:
        if _decide_timed(case.policy, case.command, found) is not PermissionOutcome.ALLOW:
            continue
        if case.known_effects is None:
            found.allowed.append(case.command)
        elif not case.known_effects.is_permitted:
            found.faults.append(
                f"allowed by {case.known_effects.rules}: {case.command!r}, which does {case.known_effects.truth}"
            )
    return found


def _make_known_case(rng: random.Random) -> _Case:
    rules, truth = command_grammar.random_rules(rng), command_grammar.CommandEffects()
    command = command_grammar.random_command(rng, truth)
    policy = Policy.parse(
        {Layer.PROJECT: {PermissionOutcome.ALLOW: [*rules.allow, "Edit(src/*)"], PermissionOutcome.DENY: rules.deny}}
    )
    return _Case(command, policy, _KnownEffects(rules, truth))


def _make_broken_case(breaker: CommandDamager, rng: random.Random, policy: Policy) -> _Case:
    return _Case(breaker.make_command(rng), policy)


def _decide_timed(policy: Policy, command: str, found: _BatchResult) -> PermissionOutcome | None:
    start = time.thread_time_ns()
    try:
        outcome = decide_command(policy, command, _PATH_CONTEXT).outcome
    except Exception as error:  # noqa: BLE001 - the claim is that there is none
        found.faults.append(f"{error!r} at {command!r}")
        return None
    if len(command) < 1_000:
        found.microseconds[(time.thread_time_ns() - start) // 10_000 * 10] += 1
    found.outcomes[outcome] += 1
    return outcome


async def _check_in_bash(commands: list[str]) -> list[str]:
    """Runs allowed commands in bash; returns those that run or write something that no rule allows."""
    rules = [
        each.rule.text for each in corpus.load_policy("everyday").rules if each.rule.outcome is PermissionOutcome.ALLOW
    ]
    named = {text.removeprefix("Bash(").split()[0].rstrip(")") for text in rules if text.startswith("Bash(")}
    permitted = named | _READERS
    tokens = {part for command in commands for part in command.split() if part.isidentifier()}
    programs = sorted((permitted | tokens | {"touch", "rm", "curl", "sudo"}) - {":", "[", "."})
    faults = []
    for command, (ran, written) in zip(commands, await bash_trace.trace_commands(commands, programs), strict=True):
        if strange := {name for name in ran if name not in permitted}:
            faults.append(f"allowed: {command!r}, which ran {sorted(strange)}")
        if strange := {
            name for name in written if not name.endswith(".log") and name.split("/")[0] not in _WRITABLE_DIRECTORIES
        }:
            faults.append(f"allowed: {command!r}, which created {sorted(strange)}")
    return faults


def _figure(total: _BatchResult, bash_runs: int, max_p99_us: int) -> Figure:
    count, seen, p99 = sum(total.microseconds.values()), 0, 0
    for microseconds in sorted(total.microseconds):
        seen += total.microseconds[microseconds]
        if seen >= count * 0.99:
            p99 = microseconds + 10
            break
    middle = sorted(total.microseconds.elements())[count // 2]
    commands = sum(total.outcomes.values())
    outcomes = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(total.outcomes.items()))
    headline = f"{commands:,} commands: 0 exceptions, 0 wrongly allowed, p99 {p99 / 1000:.2f} ms"
    summary = (
        f"{commands:,} commands: {outcomes}; 0 exceptions, 0 wrongly allowed; {bash_runs:,} broken commands that were "
        f"allowed ran nothing else in bash; p99 {p99 / 1000:.2f} ms of CPU time for commands under 1 KB (limit 1), p50 "
        f"{middle / 1000:.2f}"
    )
    if total.faults:
        headline = f"{commands:,} commands: {len(total.faults)} faults"
        summary = f"{len(total.faults)} faults, the first: {total.faults[0]}"
    details: dict[str, Json] = {
        "faults": [*total.faults[:50]],
        "said": dict(total.outcomes),
        "p99_us": p99,
        "p50_us": middle,
    }
    return Figure(headline=headline, summary=summary, holds=not total.faults and p99 < max_p99_us, details=details)
