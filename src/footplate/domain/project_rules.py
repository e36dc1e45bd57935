"""Compatibility aliases for database migration 0018, which imports two functions of `footplate.domain.projects` from
here.

Released migrations are never edited, so this module must keep its name and its content.
"""

from footplate.domain.projects.location_permission_rules import merge_rules
from footplate.domain.projects.location_permission_rules import project_location as place_of

__all__ = ["merge_rules", "place_of"]
