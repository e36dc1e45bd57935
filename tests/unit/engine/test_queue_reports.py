"""The task queues of a deployment are reported with what waits in them."""

from typing import Any

import pytest
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeTaskQueueResponse

from footplate.config import Settings
from footplate.engine.temporal.queue_reports import QueueReports


class _Client:
    namespace = "default"

    @property
    def workflow_service(self) -> "_Client":
        return self

    async def describe_task_queue(self, request: DescribeTaskQueueRequest, **_: Any) -> DescribeTaskQueueResponse:
        assert request.report_stats
        return DescribeTaskQueueResponse()


@pytest.mark.parametrize(("backends", "reported"), [("", set()), ("docker", {"sandbox", "docker"})])
async def test_only_queues_that_workers_ask_are_reported(backends: str, reported: set[str]) -> None:
    settings = Settings(environment="sandbox", backends=backends, docker_image="debian")
    client: Any = _Client()
    found = await QueueReports(client, settings).describe()
    assert {each.backend for each in found} - {None} == reported
    assert [each.kind for each in found if each.backend is None] == ["workflow", "activity", "activity"]
