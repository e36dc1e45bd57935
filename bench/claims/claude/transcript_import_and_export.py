"""Transcripts of the plain CLI can be imported, continued, exported and continued again in the plain CLI.

The history that the model saw at the end of each conversation must be in Footplate's request, and then again in the
plain CLI's: every message, call and result, with the messages since. A call that was killed has an unknown outcome.
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
from bench.support.transcripts.conversation_shapes import SHAPES, ShapeSetup
from bench.support.transcripts.plain_cli import MODEL, LocalMachine
from bench.support.transcripts.request_content import RequestItem, first_difference, request_items
from footplate.harness.recovery_text import UNKNOWN
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
            scene = ShapeSetup(name, LocalMachine(cluster.directory / f"desk-{name}", cluster.model), cluster.model)
            count, fault = await _run_journey(cluster, client, scene)
            lines += count
            faults += [f"{name}: {fault}"] if fault else []
            print(f"  {name}: {fault or 'correct'} ({count} lines, {time.monotonic() - began:.1f} s)", flush=True)
        validated = client.ledger.validated
    return Figure(
        headline=f"{len(names) - len(faults)} of {len(names)} transcripts imported, continued, exported and continued "
        "by the plain CLI",
        summary=f"{len(names)} transcripts of different shapes ({lines:,} lines) imported, continued, exported and "
        f"continued by the plain CLI: the model saw the whole history both times in {len(names) - len(faults)}"
        + (f"; the first fault: {faults[0]}" if faults else ""),
        holds=not faults,
        details={"faults": [*faults], "validated": validated},
    )


async def _run_journey(cluster: Cluster, client: Client, scene: ShapeSetup) -> tuple[int, str | None]:
    session_id = await SHAPES[scene.name](scene)
    path = scene.machine.transcript(session_id)
    history = await _history(cluster, scene, path)
    server = {"url": cluster.base_urls[0], "key": cluster.key}
    imported: list[dict[str, Any]] = []
    for _ in range(2):  # the second import returns the same session
        output = await scene.machine.run_footplate("import", "--json", "--model", MODEL, str(path), **server)
        imported += json.loads(output)
    footplate_session_id = imported[0]["session_id"]
    if footplate_session_id is None or {each["session_id"] for each in imported} != {footplate_session_id}:
        return 0, f"it was imported as {imported}"
    shown = await _list_texts(client, footplate_session_id)
    prompt_here = f"{_HERE} [[script:{scene.name}-here]]"
    await cluster.model.install(f"{scene.name}-here", replies([text("Gladly.")]))
    if texts(await client.run_turn(footplate_session_id, prompt_here, patience=120))[-1:] != ["Gladly."]:
        return 0, "Footplate did not continue it"
    wanted: list[RequestItem] = [*history, ("user", prompt_here)]
    fault = first_difference(
        _without_killed_calls(scene, await _last_request(cluster, f"{scene.name}-here")), wanted
    ) or _find_missing_text(shown, history)
    if fault:
        return 0, f"in Footplate, {fault}"
    pulled = json.loads(await scene.machine.run_footplate("pull", footplate_session_id, "--json", **server))
    prompt_there = f"{_THERE} [[script:{scene.name}-there]]"
    await cluster.model.install(f"{scene.name}-there", replies([text("At home.")]))
    await scene.machine.resume_with_cli(pulled["transcript_id"], prompt_there)
    wanted += [("assistant", "Gladly."), ("user", prompt_there)]
    fault = first_difference(_without_killed_calls(scene, await _last_request(cluster, f"{scene.name}-there")), wanted)
    return imported[0]["lines"], f"in the plain CLI, {fault}" if fault else None


async def _history(cluster: Cluster, scene: ShapeSetup, path: Path) -> list[RequestItem]:
    """Returns the model's last request and, from the end of the transcript, its response to it."""
    history = await _last_request(cluster, scene.script)
    messages = await asyncio.to_thread(_whole_lines, path)
    assistant_lines = [line for line in messages if line["type"] == "assistant" and not line.get("isSidechain")]
    last = [line for line in assistant_lines if line["message"]["id"] == assistant_lines[-1]["message"]["id"]]
    ids = [block["id"] for line in last for block in line["message"]["content"] if block["type"] == "tool_use"]
    assistant_messages = [
        {"role": "assistant", "content": block} for line in last for block in [line["message"]["content"]]
    ]
    results = [line["message"] for line in messages if line["type"] == "user" and _has_result_for(line, {*ids})]
    history += request_items({"body": {"messages": [*assistant_messages, *results]}})
    finished_call_ids = {item[1].split()[0] for item in history if item[0] == "result"}
    return [*history, *(("result", f"{call_id} {UNKNOWN}") for call_id in ids if call_id not in finished_call_ids)]


def _without_killed_calls(scene: ShapeSetup, found: list[RequestItem]) -> list[RequestItem]:
    """Removes calls that were killed: the plain CLI forgets them, Footplate reports an unknown outcome."""
    lost = {
        text_.split()[0]
        for kind, text_ in found
        if scene.has_lost_call and kind == "result" and text_.endswith(UNKNOWN)
    }
    return [item for item in found if item[0] not in {"call", "result"} or item[1].split()[0] not in lost]


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    found = []
    for line in path.read_bytes().splitlines():
        with suppress(ValueError):  # an incomplete last line
            found.append(json.loads(line))
    return found


def _has_result_for(line: dict[str, object], ids: set[str]) -> bool:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(block.get("tool_use_id") in ids for block in content)


async def _last_request(cluster: Cluster, script: str) -> list[RequestItem]:
    return request_items((await cluster.model.requests(script))[-1])


async def _list_texts(client: Client, session_id: str) -> list[str]:
    """Returns all text in the session's events."""
    found: list[str] = []
    for event in await client.events(session_id):
        found += [block["text"] for block in event.get("content") or () if block.get("type") == "text"]
    return found


def _find_missing_text(shown: Sequence[str], history: Sequence[RequestItem]) -> str | None:
    """Returns a message of the user or the model that is not in the session's events, if there is one."""
    whole = "\n".join(shown)
    for kind, text_ in history:
        if kind in {"user", "assistant"} and text_[:60] not in whole and not text_.startswith(_SUMMARY):
            return f"no event contains {text_[:60]!r}"
    return None


_SUMMARY: Final = ("This session is being continued", "<local-command", "<command-name>", "Caveat")
