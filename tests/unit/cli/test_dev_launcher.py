"""Decisions of `footplate dev` before it starts the server."""

import pytest

from footplate.cli.dev import launcher
from footplate.config import Settings


@pytest.mark.parametrize(
    ("keys", "model"),
    [
        ({}, "claude-sonnet-5"),
        ({"anthropic_api_key": "a", "openai_api_key": "o"}, "claude-sonnet-5"),
        ({"openai_api_key": "o"}, "openai:gpt-5.1"),
    ],
)
def test_the_default_model_has_an_api_key(keys: dict[str, str], model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "FOOTPLATE_ANTHROPIC_API_KEY", "FOOTPLATE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, key in keys.items():
        monkeypatch.setenv(name.upper(), key)
    assert launcher._default_model(Settings()) == model
