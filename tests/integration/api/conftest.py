"""The api on twins, as the unit tests have it, for tests that serve it on a socket."""

import pytest
from tests.unit.api.conftest import Api


@pytest.fixture
def api() -> Api:
    return Api()
