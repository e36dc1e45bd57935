"""The addresses of all pages of the dashboard, with the content of `bench.support.dashboard_content`."""

from collections.abc import Mapping

_COMPARED = ("Make the tests pass", "Fix a typo in README")
_TABS = ("conversation", "changes", "files", "terminal", "steps", "children", "forks")


def list_pages(session_ids: Mapping[str, str]) -> dict[str, str]:
    """Returns the address of each page by a short name. `session_ids` are those of `create_content`, by title."""
    first, second = (session_ids[title] for title in _COMPARED)
    return {
        "inbox": "/inbox",
        "sessions": "/sessions",
        "board": "/sessions?layout=board",
        **{tab: f"/sessions/{first}?tab={tab}" for tab in _TABS},
        "compare": f"/compare?sessions={first},{second}",
        "new-session": "/new",
        "design": "/design",
    }
