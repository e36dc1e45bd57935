"""The names under which database migration 0018 imports two functions of `footplate.domain.projects`. Migrations never
change.
"""

from footplate.domain.projects.project_rules import merge_rules
from footplate.domain.projects.project_rules import project_location as place_of

__all__ = ["merge_rules", "place_of"]
