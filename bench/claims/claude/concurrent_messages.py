"""When two clients write to one session at the same time, both messages are processed in order and nothing is lost."""

import asyncio
from typing import Final

from bench.prove.figure import Figure
from bench.support.claude.request_conversation import read_conversation
from bench.support.clients import Client, texts
from bench.support.cluster import open_cluster
from bench.support.crash.stream_watcher import StreamWatcher
from footplate.testing import replies, text

_SCRIPT: Final = "both"
_FULL, _QUICK = 50, 2


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    times = _QUICK if quick else _FULL
    faults: list[str] = []
    async with (
        open_cluster(workers=2) as cluster,
        Client(cluster) as one,
        Client(cluster) as other,
    ):
        await cluster.model.install(_SCRIPT, replies([text("Heard.")]))
        session_id = await one.session(await one.agent(extra_body={"harness": "claude"}))
        async with StreamWatcher(one, session_id) as watcher:
            for number in range(times):
                prompts = [f"{who} says {number}. [[script:{_SCRIPT}]]" for who in ("Ann", "Bob")]
                await asyncio.gather(
                    *(
                        client.send_text(session_id, prompt)
                        for client, prompt in zip((one, other), prompts, strict=True)
                    )
                )
                await watcher.wait_for_turns(2 * (number + 1))
        events = await one.events(session_id)
        sent_texts = _texts_in_processing_order(events)
        seen_by_model = [
            message
            for role, message in read_conversation((await cluster.model.requests(_SCRIPT))[-1])
            if role == "user"
        ]
        if seen_by_model != sent_texts:
            faults.append(
                f"the model saw {len(seen_by_model)} messages, the log has {len(sent_texts)}, or in another order"
            )
        if len(set(sent_texts)) != 2 * times:
            faults.append(f"{2 * times} messages were sent, {len(set(sent_texts))} processed")
        if len(texts(events)) != 2 * times:
            faults.append(f"{len(texts(events))} responses to {2 * times} messages")
    headline = f"{2 * times} messages sent two at once: all processed, one after the other"
    summary = (
        f"two clients sent at once {times} times: {2 * times} messages were processed one after the other, each got a "
        "response, and all are in the history that the model saw last"
    )
    if faults:
        headline, summary = f"{2 * times} messages sent two at once: {len(faults)} faults", faults[0]
    return Figure(headline=headline, summary=summary, holds=not faults, details={"faults": [*faults]})


def _texts_in_processing_order(events: list[dict[str, object]]) -> list[str]:
    """Returns the messages in the order in which they were processed."""
    processed = [event for event in events if event["type"] == "user.message" and event["processed_at"]]
    ordered = dict.fromkeys((str(event["id"]), str(event["content"][0]["text"])) for event in processed)  # pyrefly: ignore[bad-index]
    return [text_ for _, text_ in ordered]
