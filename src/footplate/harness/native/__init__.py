"""The `native` harness: Footplate's own agent loop, for every model that the library pydantic-ai supports."""

from footplate.domain.ports.harness import Harness, HarnessServices
from footplate.harness.native.harness import NativeHarness
from footplate.harness.native.requests.model_resolver import ModelResolver
from footplate.harness.native.warm_up import warm_up
from footplate.harness.native.web.web_tools import WebTools


def create(services: HarnessServices) -> Harness:
    """The factory of the entry point `native`."""
    models = ModelResolver(services.endpoints, services.model_transport)
    warm_up(models)
    models.load_packages()
    return NativeHarness(models.resolve, WebTools(services.web), services.mcp)
