"""Query parameters for lists of agents, agent versions and environments, and for routes that take a version or no
parameters.
"""

from typing import Annotated

from pydantic import Field

from footplate.api.wire.request_base import Parameters, Text, UtcTime, Version

PageSize = Annotated[int, Field(ge=1, le=100)]


class ListAgents(Parameters):
    limit: PageSize = 20
    page: Text | None = None
    include_archived: bool = False
    created_at_gte: Annotated[UtcTime | None, Field(alias="created_at[gte]")] = None
    created_at_lte: Annotated[UtcTime | None, Field(alias="created_at[lte]")] = None


class ListVersions(Parameters):
    limit: PageSize = 20
    page: Text | None = None


class ListEnvironments(Parameters):
    limit: PageSize = 20
    page: Text | None = None
    include_archived: bool = False


class ChooseVersion(Parameters):
    version: Version | None = None


class NoParameters(Parameters):
    """The query of a route that accepts no parameters."""
