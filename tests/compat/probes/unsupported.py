"""Parts of the reference that Footplate does not support: each is refused by name."""

from collections.abc import Mapping
from typing import Any, Final

import anthropic
from bench.support.sdk.sdk_client import SdkClient
from tests.compat.registry import probe, refused

WORK: Final = ("ack", "heartbeat", "list", "poll", "retrieve", "stats", "stop", "update")
_ARGUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "update": {"metadata": {}},
}


@refused("environments.work.ack")
@refused("environments.work.heartbeat")
@refused("environments.work.list")
@refused("environments.work.poll")
@refused("environments.work.poller")
@refused("environments.work.retrieve")
@refused("environments.work.stats")
@refused("environments.work.stop")
@refused("environments.work.update")
@refused("environments.work.worker")
async def the_work_queue_is_refused(door: SdkClient) -> None:
    for method in WORK:
        item = () if method in {"list", "poll", "stats"} else ("work_1",)
        fields = {"environment_id": "env_1"} if item else {}
        arguments = item or ("env_1",)
        extra = _ARGUMENTS["update"] if method == "update" else {}
        await _require_refused(door, f"environments.work.{method}", "work", *arguments, **fields, **extra)


@probe
async def unsupported_resources_are_refused(door: SdkClient) -> None:
    for method in ("memory_stores.list", "skills.list"):
        await _require_refused(door, method, method.split(".")[0])
    await _require_refused(door, "vaults.list", "vaults")


async def _require_refused(door: SdkClient, method: str, field: str, *args: Any, **kwargs: Any) -> None:
    await door.expect_error(anthropic.BadRequestError, method, *args, field=field, **kwargs)
