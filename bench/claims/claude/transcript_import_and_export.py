"""Conversations of the plain CLI become sessions, go on there, go back, and go on with the plain CLI.

What the model was told at the end of each conversation is what it must be told by Footplate, and then by the plain CLI
again, every word, call and result of it, with what was said since. A call that was killed has an unknown outcome.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from bench.prove.figure import Figure
from bench.support.clients import Client, texts
from bench.support.cluster import Cluster, open_cluster
from bench.support.transcripts.plain import MODEL, Desk
from bench.support.transcripts.shapes import SHAPES, Scene
from bench.support.transcripts.told import Told, difference, told
from footplate.harness.leftovers import UNKNOWN
from footplate.testing import replies, text

_QUICK: Final = ("subagent", "interrupted")
_HERE, _THERE = "We go on here.", "And at home."


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    names = _QUICK if quick else tuple(SHAPES)
    faults: list[str] = []
    lines = 0
    async with open_cluster() as cluster, Client(cluster) as client:
        for name in names:
            began = time.monotonic()
            scene = Scene(name, Desk(cluster.directory / f"desk-{name}", cluster.model), cluster.model)
            count, fault = await _journey(cluster, client, scene)
            lines += count
            faults += [f"{name}: {fault}"] if fault else []
            print(f"  {name}: {fault or 'held'} ({count} lines, {time.monotonic() - began:.1f} s)", flush=True)
        validated = client.ledger.validated
    return Figure(
        text=f"{len(names)} transcripts of different shapes ({lines:,} lines) imported, gone on with, pulled back and "
        f"gone on with by the plain CLI: the model was told the whole history both times in {len(names) - len(faults)}"
        + (f"; {faults[0]}" if faults else ""),
        holds=not faults,
        details={"faults": [*faults], "validated": validated},
    )


async def _journey(cluster: Cluster, client: Client, scene: Scene) -> tuple[int, str | None]:
    session_id = await SHAPES[scene.name](scene)
    path = scene.desk.transcript(session_id)
    history = await _history(cluster, scene, path)
    place = {"url": cluster.base_urls[0], "key": cluster.key}
    imported = []
    for _ in range(2):  # a second time is the same session
        answer = await scene.desk.footplate("import", "--json", "--model", MODEL, str(path), **place)
        imported += json.loads(answer)
    ours = imported[0]["session_id"]
    if ours is None or {each["session_id"] for each in imported} != {ours}:
        return 0, f"it was imported as {imported}"
    shown = await _shown(client, ours)
    here = f"{_HERE} [[script:{scene.name}-here]]"
    await cluster.model.install(f"{scene.name}-here", replies([text("Gladly.")]))
    if texts(await client.run_turn(ours, here, patience=120))[-1:] != ["Gladly."]:
        return 0, "Footplate did not go on with it"
    wanted: list[Told] = [*history, ("user", here)]
    fault = difference(_found(scene, await _last(cluster, f"{scene.name}-here")), wanted) or _untold(shown, history)
    if fault:
        return 0, f"here, {fault}"
    pulled = json.loads(await scene.desk.footplate("pull", ours, "--json", **place))
    there = f"{_THERE} [[script:{scene.name}-there]]"
    await cluster.model.install(f"{scene.name}-there", replies([text("At home.")]))
    await scene.desk.resume(pulled["transcript_id"], there)
    wanted += [("assistant", "Gladly."), ("user", there)]
    fault = difference(_found(scene, await _last(cluster, f"{scene.name}-there")), wanted)
    return imported[0]["lines"], f"at home, {fault}" if fault else None


async def _history(cluster: Cluster, scene: Scene, path: Path) -> list[Told]:
    """What the model was told last, and what it said then, by the transcript's own end."""
    history = await _last(cluster, scene.script)
    messages = await asyncio.to_thread(_whole_lines, path)
    answers = [line for line in messages if line["type"] == "assistant" and not line.get("isSidechain")]
    last = [line for line in answers if line["message"]["id"] == answers[-1]["message"]["id"]]
    ids = [block["id"] for line in last for block in line["message"]["content"] if block["type"] == "tool_use"]
    said = [{"role": "assistant", "content": block} for line in last for block in [line["message"]["content"]]]
    results = [line["message"] for line in messages if line["type"] == "user" and _answers(line, {*ids})]
    history += told({"body": {"messages": [*said, *results]}})
    answered = {item[1].split()[0] for item in history if item[0] == "result"}
    return [*history, *(("result", f"{call_id} {UNKNOWN}") for call_id in ids if call_id not in answered)]


def _found(scene: Scene, found: list[Told]) -> list[Told]:
    """The plain CLI forgets a call that was killed. Ours may tell of it: it was made, and its outcome is unknown."""
    lost = {words.split()[0] for kind, words in found if scene.lost and kind == "result" and words.endswith(UNKNOWN)}
    return [item for item in found if item[0] not in {"call", "result"} or item[1].split()[0] not in lost]


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    found = []
    for line in path.read_bytes().splitlines():
        with suppress(ValueError):  # one that was not written to its end
            found.append(json.loads(line))
    return found


def _answers(line: dict[str, object], ids: set[str]) -> bool:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(block.get("tool_use_id") in ids for block in content)


async def _last(cluster: Cluster, script: str) -> list[Told]:
    return told((await cluster.model.requests(script))[-1])


async def _shown(client: Client, session_id: str) -> list[str]:
    """All text in the session's events."""
    found = []
    for event in await client.events(session_id):
        found += [block["text"] for block in event.get("content") or () if block.get("type") == "text"]
    return found


def _untold(shown: Sequence[str], history: Sequence[Told]) -> str | None:
    """What people and the model said is in the session's events as well."""
    whole = "\n".join(shown)
    for kind, words in history:
        if kind in {"user", "assistant"} and words[:60] not in whole and not words.startswith(_SUMMARY):
            return f"no event tells of {words[:60]!r}"
    return None


_SUMMARY: Final = ("This session is being continued", "<local-command", "<command-name>", "Caveat")
