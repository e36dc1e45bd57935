"""Groups of sessions: accounts for members that end, and starts the children of a session."""

from footplate.store.log.session_groups.member_ends import AccountedEnd, record_member_end

__all__ = ["AccountedEnd", "record_member_end"]
