"""Defines `AsyncFootplate`, the asynchronous API client. An instance connects to one server with one API key."""

from typing import Self

import httpx2

from footplate.client.approvals import Approvals, Comments, Inbox, Notifications, Questions
from footplate.client.audit import Audit, DeploymentHealth, UsageReports
from footplate.client.batches import Batches
from footplate.client.events import Events
from footplate.client.files import Files
from footplate.client.members import ApiKeys, Limits, Members, SignIn, Teams
from footplate.client.policies import Policies
from footplate.client.resources import (
    Agents,
    DeploymentRuns,
    Deployments,
    Environments,
    Models,
    Projects,
    Sessions,
    SessionTemplates,
    Turns,
    Workspaces,
)
from footplate.client.steps import Steps, Terminals
from footplate.client.transport import PATIENCE, TIMEOUT, RateLimitListener, Transport
from footplate.client.webhooks import Triggers, Webhooks


class AsyncFootplate:
    """Groups the API's resources as attributes: `client.sessions`, `client.events` and so on.

    `patience` is how many seconds the client retries when a server that has responded before stops responding.
    Retries are safe, because every change carries its own idempotency key.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
        http: httpx2.AsyncClient | None = None,
        on_rate_limit: RateLimitListener | None = None,
    ) -> None:
        """`on_rate_limit` is called when the server limits a request, before the client waits and retries."""
        self._transport = Transport(
            base_url, api_key, timeout=timeout, patience=patience, http=http, on_rate_limit=on_rate_limit
        )
        self.base_url = self._transport.base_url
        self.agents = Agents(self._transport)
        self.models = Models(self._transport)
        self.environments = Environments(self._transport)
        self.projects = Projects(self._transport)
        self.workspaces = Workspaces(self._transport)
        self.sessions = Sessions(self._transport)
        self.turns = Turns(self._transport)
        self.steps = Steps(self._transport)
        self.terminals = Terminals(self._transport)
        self.batches = Batches(self._transport)
        self.deployments = Deployments(self._transport)
        self.deployment_runs = DeploymentRuns(self._transport)
        self.approvals = Approvals(self._transport)
        self.questions = Questions(self._transport)
        self.inbox = Inbox(self._transport)
        self.comments = Comments(self._transport)
        self.session_templates = SessionTemplates(self._transport)
        self.audit = Audit(self._transport)
        self.usage = UsageReports(self._transport)
        self.health = DeploymentHealth(self._transport)
        self.limits = Limits(self._transport)
        self.members = Members(self._transport)
        self.teams = Teams(self._transport)
        self.api_keys = ApiKeys(self._transport)
        self.sign_in = SignIn(self._transport)
        self.policies = Policies(self._transport)
        self.files = Files(self._transport)
        self.events = Events(self._transport)
        self.webhooks = Webhooks(self._transport)
        self.triggers = Triggers(self._transport)
        self.notifications = Notifications(self._transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._transport.aclose()
