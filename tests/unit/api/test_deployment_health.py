"""Administrators see workers and queues of the deployment, and all members its versions."""

from dataclasses import replace
from datetime import UTC, datetime

import httpx2

from footplate import __version__
from footplate.api.wire.deployment_health import TaskQueue, Versions, Worker
from footplate.domain.ports.deployment_health import WorkerDescription, WorkerRecord

from .conftest import Api

_NOW = datetime(2026, 11, 19, tzinfo=UTC)
_WORKER = WorkerRecord(
    id="wrkr_1",
    host="host-1",
    description=WorkerDescription(version="0.1.0", backends=["sandbox"], harnesses=["native"], max_turns=100),
    started_at=_NOW,
    last_seen_at=_NOW,
    running_turns=7,
    is_alive=True,
)


async def test_workers_queues_and_versions_are_reported(api: Api, http: httpx2.AsyncClient) -> None:
    lost = replace(_WORKER, id="wrkr_2", description=WorkerDescription(), is_alive=False)
    api.world.workers = [_WORKER, lost]
    workers = (await http.get("/v1/workers")).json()["data"]
    assert [Worker.model_validate(each).state for each in workers] == ["running", "lost"]
    assert (workers[0]["running_turns"], workers[0]["max_turns"], workers[1]["running_turns"]) == (7, 100, 0)
    queues = (await http.get("/v1/queues")).json()["data"]
    assert [TaskQueue.model_validate(each).backlog for each in queues] == [3]
    versions = Versions.model_validate((await http.get("/v1/versions")).json())
    assert (versions.footplate, versions.temporal) == (__version__, "1.32.0")
    assert [each.model_dump() for each in versions.workers] == [{"version": "0.1.0", "workers": 1}]
