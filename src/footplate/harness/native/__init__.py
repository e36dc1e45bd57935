"""The `native` harness: our own agent loop over any model that pydantic-ai can reach."""

from footplate.domain.ports import Harness, HarnessServices
from footplate.harness.native.harness import NativeHarness
from footplate.harness.native.models import Models
from footplate.harness.native.warm_up import warm_up
from footplate.harness.native.web.access import Web


def create(services: HarnessServices) -> Harness:
    """The factory behind the entry point `native`."""
    models = Models(services.endpoints, services.model_transport)
    warm_up(models)
    return NativeHarness(models.resolve, Web(services.web), services.mcp)
