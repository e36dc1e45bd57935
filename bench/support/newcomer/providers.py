"""Checks that the README's commands use a provider's model when its key is set, with a scripted server as provider."""

from collections.abc import Mapping
from typing import Final

from bench.prove.figure import require
from bench.support.newcomer.desk import Desk, stop
from bench.support.newcomer.page import FirstScreen
from footplate.testing import replies, text
from footplate.testing.model_process import ModelProcess

_KEY: Final = "a-key-of-mine"
_ANSWER: Final = "Hello from the provider."


async def used(page: FirstScreen, desk: Desk, *, quick: bool) -> list[str]:
    """Runs the README's commands with a key and without `--scripted demo`, and returns the requested models."""
    async with ModelProcess({"default": replies([text(_ANSWER)])}) as model:
        anthropic = {"ANTHROPIC_API_KEY": _KEY, "ANTHROPIC_BASE_URL": model.url}
        openai = {"OPENAI_API_KEY": _KEY, "OPENAI_BASE_URL": model.openai_url}
        return [await _one(page, desk, model, each) for each in ([anthropic] if quick else [anthropic, openai])]


async def _one(page: FirstScreen, desk: Desk, model: ModelProcess, keys: Mapping[str, str]) -> str:
    await model.clear()
    # Its own data directory: unfinished sessions of another one would continue here and request the demo's model.
    there = {**keys, "FOOTPLATE_DATA_DIR": str(desk.folder / "with-a-key")}
    dev = await desk.start(page.serve.replace(" --scripted demo", ""), page.ready, there)
    try:
        told = await desk.watch(page.run, _ANSWER.split()[0], there)
    finally:
        await stop(dev)
    require(holds=told.code == 0 and _ANSWER in told.text, otherwise=f"with {[*keys]} it prints: {told.text}")
    asked = await model.requests()
    models = {str(each["body"].get("model")) for each in asked if isinstance(each["body"], dict)}
    keyed = all(_KEY in str(each["headers"]) for each in asked)
    require(holds=len(models) == 1 and keyed, otherwise=f"the provider received requests for {models}, or another key")
    return models.pop()
