"""Calls to a restarting database are retried for transient errors, until a time limit."""

import pytest

from footplate.domain.errors import Unavailable
from footplate.store.database import call_with_retries


class Flaky:
    def __init__(self, *failures: Exception) -> None:
        self.failures = [*failures]
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return "done"


async def test_a_successful_call_runs_once() -> None:
    call = Flaky()
    assert await call_with_retries(call, on=(OSError,), seconds=1, wait_max=0.01) == "done"
    assert call.calls == 1


async def test_transient_errors_are_retried() -> None:
    call = Flaky(OSError(), Unavailable("down"), OSError())
    assert await call_with_retries(call, on=(OSError, Unavailable), seconds=5, wait_max=0.01) == "done"
    assert call.calls == 4


@pytest.mark.parametrize("failures", [(ValueError(),), (OSError(), ValueError())])
async def test_other_errors_are_raised_at_once(failures: tuple[Exception, ...]) -> None:
    call = Flaky(*failures, OSError())
    with pytest.raises(ValueError):  # noqa: PT011 - the error has no message
        await call_with_retries(call, on=(OSError,), seconds=1, wait_max=0.01)
    assert call.calls == len(failures)


async def test_retries_end_at_the_time_limit() -> None:
    call = Flaky(*[OSError() for _ in range(10_000)])
    with pytest.raises(OSError):  # noqa: PT011 - the error has no message
        await call_with_retries(call, on=(OSError,), seconds=0.2, wait_max=0.01)
    assert 1 < call.calls < 1000
