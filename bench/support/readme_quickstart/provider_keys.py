"""Checks that the README's commands use a provider's model when its key is set, with a scripted server as provider."""

from collections.abc import Mapping
from typing import Final

from bench.prove.figure import require
from bench.support.readme_quickstart.readme_blocks import ReadmeBlocks
from bench.support.readme_quickstart.user_shell import UserShell, stop_dev_server
from footplate.testing import replies, text
from footplate.testing.scripted_model_process import ModelProcess

_KEY: Final = "a-key-of-mine"
_RESPONSE: Final = "Hello from the provider."


async def run_with_provider_keys(page: ReadmeBlocks, shell: UserShell, *, quick: bool) -> list[str]:
    """Runs the README's commands with a key and without `--scripted demo`, and returns the requested models."""
    async with ModelProcess({"default": replies([text(_RESPONSE)])}) as model:
        anthropic = {"ANTHROPIC_API_KEY": _KEY, "ANTHROPIC_BASE_URL": model.url}
        openai = {"OPENAI_API_KEY": _KEY, "OPENAI_BASE_URL": model.openai_url}
        return [
            await _run_with_key(page, shell, model, each) for each in ([anthropic] if quick else [anthropic, openai])
        ]


async def _run_with_key(page: ReadmeBlocks, shell: UserShell, model: ModelProcess, keys: Mapping[str, str]) -> str:
    await model.clear()
    # Its own data directory: unfinished sessions of another one would continue here and request the demo's model.
    variables = {**keys, "FOOTPLATE_DATA_DIR": str(shell.folder / "with-a-key")}
    dev = await shell.start(page.serve.replace(" --scripted demo", ""), page.ready, variables)
    try:
        output = await shell.run_on_terminal(page.run, _RESPONSE.split()[0], variables)
    finally:
        await stop_dev_server(dev)
    require(holds=output.code == 0 and _RESPONSE in output.text, otherwise=f"with {[*keys]} it prints: {output.text}")
    requests = await model.requests()
    models = {str(each["body"].get("model")) for each in requests if isinstance(each["body"], dict)}
    keyed = all(_KEY in str(each["headers"]) for each in requests)
    require(holds=len(models) == 1 and keyed, otherwise=f"the provider received requests for {models}, or another key")
    return models.pop()
