"""A typed, asynchronous client of the HTTP API. It imports nothing else of Footplate and runs where Python runs.

    async with AsyncFootplate("http://127.0.0.1:8700", "key") as client:
        async for event in client.events.stream(session_id, after="0"):
            print(event.type, event.text)

`errors` draws the tree of what it raises; `models` has what it returns.
"""

from footplate.client.api import AsyncFootplate
from footplate.client.errors import (
    ApiError,
    Busy,
    ClientError,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    RateLimited,
    ServerFailed,
    StreamLost,
    Unauthenticated,
    Unreachable,
)
from footplate.client.models import (
    Agent,
    Approval,
    AuditEntry,
    AuditVerification,
    ChangedCall,
    Deleted,
    Diff,
    Environment,
    Event,
    File,
    FileChange,
    ForkedFrom,
    ImportedRules,
    Left,
    Page,
    Policy,
    PolicyReplay,
    Project,
    Session,
    TreeDiff,
    Turn,
    Usage,
    Workspace,
)

__all__ = [
    "Agent",
    "ApiError",
    "Approval",
    "AsyncFootplate",
    "AuditEntry",
    "AuditVerification",
    "Busy",
    "ChangedCall",
    "ClientError",
    "Conflict",
    "Deleted",
    "Diff",
    "Environment",
    "Event",
    "File",
    "FileChange",
    "Forbidden",
    "ForkedFrom",
    "ImportedRules",
    "InvalidRequest",
    "Left",
    "NotFound",
    "Page",
    "Policy",
    "PolicyReplay",
    "Project",
    "RateLimited",
    "ServerFailed",
    "Session",
    "StreamLost",
    "TreeDiff",
    "Turn",
    "Unauthenticated",
    "Unreachable",
    "Usage",
    "Workspace",
]
