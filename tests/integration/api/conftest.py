"""The API with fake services, as in the unit tests, for tests that serve it on a socket."""

import pytest
from tests.unit.api.conftest import Api


@pytest.fixture
def api() -> Api:
    return Api()
