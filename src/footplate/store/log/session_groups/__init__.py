"""Groups of sessions: accounts for members that end, starts the children of a session, and cancels them."""

from footplate.store.log.session_groups.member_ends import AccountedEnd, record_member_end

__all__ = ["AccountedEnd", "record_member_end"]
