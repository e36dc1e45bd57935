"""With a provider's key the same commands use its model: shown with a scripted server in the provider's place."""

from collections.abc import Mapping
from typing import Final

from bench.prove.figure import require
from bench.support.newcomer.desk import Desk, stop
from bench.support.newcomer.page import FirstScreen
from footplate.testing import replies, text
from footplate.testing.process import ModelProcess

_KEY: Final = "a-key-of-mine"
_ANSWER: Final = "Hello from the provider."


async def used(page: FirstScreen, desk: Desk, *, quick: bool) -> list[str]:
    """The models that were asked, with that key, by the README's commands without their `--scripted demo`."""
    async with ModelProcess({"default": replies([text(_ANSWER)])}) as model:
        anthropic = {"ANTHROPIC_API_KEY": _KEY, "ANTHROPIC_BASE_URL": model.url}
        openai = {"OPENAI_API_KEY": _KEY, "OPENAI_BASE_URL": model.openai_url}
        return [await _one(page, desk, model, each) for each in ([anthropic] if quick else [anthropic, openai])]


async def _one(page: FirstScreen, desk: Desk, model: ModelProcess, keys: Mapping[str, str]) -> str:
    await model.clear()
    # A place of its own: what was left unfinished elsewhere would go on here, and ask for the demo's model.
    there = {**keys, "FOOTPLATE_DATA_DIR": str(desk.folder / "with-a-key")}
    dev = await desk.start(page.serve.replace(" --scripted demo", ""), page.ready, there)
    try:
        told = await desk.watch(page.run, _ANSWER.split()[0], there)
    finally:
        await stop(dev)
    require(holds=told.code == 0 and _ANSWER in told.text, otherwise=f"with {[*keys]} it says: {told.text}")
    asked = await model.requests()
    models = {str(each["body"].get("model")) for each in asked if isinstance(each["body"], dict)}
    keyed = all(_KEY in str(each["headers"]) for each in asked)
    require(holds=len(models) == 1 and keyed, otherwise=f"the provider was asked for {models} with another key")
    return models.pop()
