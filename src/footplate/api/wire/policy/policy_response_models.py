"""Response models for permission rules, approvals and the audit trail, for the OpenAPI document and for tests."""

from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from footplate.api.wire.response_models import PermissionsAnswer, ResponseModel


class ApprovalTermsAnswer(ResponseModel):
    expires_after_seconds: int | None
    outcome: Literal["deny", "allow"]
    role: str | None
    two_people: bool


class DisplayedField(ResponseModel):
    name: str
    kind: Literal["text", "json"]
    text: str


class DisplayedCall(ResponseModel):
    name: str
    agent_name: str | None
    reason: str | None
    input: list[DisplayedField]
    whole: bool


class Approval(ResponseModel):
    id: str
    type: Literal["approval"]
    status: Literal["pending", "allowed", "denied", "closed"]
    session_id: str
    session_title: str | None
    turn_id: str
    session_thread_id: str | None
    agent_name: str | None
    name: str | None
    mcp_server_name: str | None
    input: dict[str, JsonValue] | None
    display: DisplayedCall | None
    permission: dict[str, JsonValue] | None
    created_at: datetime
    expires_at: datetime | None
    closed_at: datetime | None
    answered_by: str | None
    edited_input: dict[str, JsonValue] | None
    edited_by: str | None


class QuestionOption(ResponseModel):
    label: str
    description: str | None
    preview: str | None


class QuestionItem(ResponseModel):
    question: str
    header: str | None
    options: list[QuestionOption]
    multi_select: bool
    allow_free_text: bool


class Question(ResponseModel):
    id: str
    type: Literal["question"]
    status: Literal["pending", "answered", "closed"]
    session_id: str
    session_title: str | None
    turn_id: str
    questions: list[QuestionItem]
    default: dict[str, str] | None
    answers: dict[str, str] | None
    created_at: datetime
    expires_at: datetime | None
    closed_at: datetime | None
    answered_by: str | None


class AuditEntry(ResponseModel):
    id: str
    type: Literal["audit_entry"]
    kind: Literal["decision", "answer", "policy", "hook", "change", "refusal", "error", "terminal", "sign_in"]
    created_at: datetime
    session_id: str | None
    turn_id: str | None
    event_id: str | None
    principal: str | None
    principal_name: str | None
    session_title: str | None
    outcome: str | None
    tool: str | None
    layer: str | None
    input_summary: str | None
    input_hash: str | None
    content: dict[str, JsonValue] | None
    content_hash: str


class AuditVerification(ResponseModel):
    type: Literal["audit_verification"]
    entries: int
    batches: int
    unsealed: int
    head: str
    faults: list[str]


class OrganisationPolicy(ResponseModel):
    type: Literal["policy"]
    layer: Literal["organisation"]
    permissions: PermissionsAnswer
    approvals: ApprovalTermsAnswer
    updated_by: str | None
    updated_at: datetime | None


class ImportedPermissions(ResponseModel):
    type: Literal["imported_permissions"]
    permissions: PermissionsAnswer
    notes: list[str]


class ChangedCall(ResponseModel):
    type: Literal["changed_call"]
    event_id: str
    session_id: str
    turn_id: str | None
    created_at: datetime
    name: str
    mcp_server_name: str | None
    summary: str
    was: Literal["allow", "ask", "deny"]
    would: Literal["allow", "ask", "deny"]
    reason: str
    rule: str | None
    layer: str | None
    depends_on_links: bool
    hook: str | None


class PolicyReplay(ResponseModel):
    type: Literal["policy_replay"]
    calls: int
    gone: int
    depend_on_links: int
    depend_on_hooks: int
    outcomes: dict[str, dict[str, int]]
    oldest_at: datetime | None
    data: list[ChangedCall]
    next_page: str | None
