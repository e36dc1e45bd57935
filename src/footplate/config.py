"""Settings, read once at the edge: from the environment (`FOOTPLATE_…`), else the default.

Nothing below reads the environment by itself. Providers' own variables (`ANTHROPIC_API_KEY`, …) are read here too,
because people already have them set.
"""

import os
from pathlib import Path
from typing import Annotated

from pydantic import AliasChoices, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


def default_data_dir() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "footplate"


def _own(name: str) -> AliasChoices:
    """Ours first, then the provider's own variable."""
    return AliasChoices(f"footplate_{name}", name)


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="FOOTPLATE_", extra="ignore", populate_by_name=True)

    database_url: str = "postgresql://footplate@127.0.0.1:5432/footplate"
    redis_url: str = "redis://127.0.0.1:6379/0"
    temporal_address: str = "127.0.0.1:7233"
    temporal_namespace: str = "default"
    task_queue: str = "footplate"

    data_dir: Path = Field(default_factory=default_data_dir)
    objects_url: str | None = None
    """Where large bodies go: `file:///…`, `s3://bucket/prefix`, …; a folder in `data_dir` when not set."""

    host: str = "127.0.0.1"
    port: int = 8700
    database_pool: int = 10
    ignore_unknown_fields: bool = False
    keepalive: float = 15.0

    default_harness: str = "native"
    max_turns: int = 100
    """Turns that one worker runs at once."""
    kept_entries: int = 200_000
    """Conversation entries that a worker keeps in memory, so that a session's next turn reads only what is new."""
    heartbeat_timeout: float = 10.0
    """A worker that the engine has not heard of for so long has lost its turns."""
    lease: float = 5.0
    """How long a worker's commands may live without word from it; always shorter than the heartbeat timeout."""
    linger: float = 300.0
    """How long an idle session's workflow stays open: its next turn starts sooner."""
    max_failures: int = 5
    """How often a turn is tried again after a temporary failure of the model's provider."""
    max_attempts: int = 20
    """How many workers a turn may outlive before it is held to be what kills them."""
    retry_wait: float = 1.0
    retry_wait_most: float = 60.0
    drain: float = 5.0
    """How long a worker that is told to stop lets its turns go on; then others take them up."""
    sweep_interval: float = 10.0

    anthropic_api_key: Annotated[SecretStr | None, Field(validation_alias=_own("anthropic_api_key"))] = None
    anthropic_base_url: Annotated[str | None, Field(validation_alias=_own("anthropic_base_url"))] = None
    openai_api_key: Annotated[SecretStr | None, Field(validation_alias=_own("openai_api_key"))] = None
    openai_base_url: Annotated[str | None, Field(validation_alias=_own("openai_base_url"))] = None

    @model_validator(mode="after")
    def _lease_is_shorter(self) -> "Settings":
        if self.lease >= self.heartbeat_timeout:
            raise ValueError(
                "FOOTPLATE_LEASE must be shorter than FOOTPLATE_HEARTBEAT_TIMEOUT: "
                "a lost worker's commands have to be dead before another worker takes over."
            )
        return self
