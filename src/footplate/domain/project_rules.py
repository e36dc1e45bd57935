"""The names that migration 0018 imports. Migrations never change; the code is in `footplate.domain.projects`."""

from footplate.domain.projects.project_rules import merge_rules
from footplate.domain.projects.project_rules import project_location as place_of

__all__ = ["merge_rules", "place_of"]
