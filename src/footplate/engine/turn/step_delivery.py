"""Delivers the work of a session for a merge or push step, with the service that also serves the API's routes."""

from collections.abc import Awaitable, Callable, Sequence

from footplate.domain.errors import InvalidRequest
from footplate.domain.files.delivery import (
    MAX_MESSAGE_CHARACTERS,
    BranchTarget,
    DeliveryJournal,
    DeliveryRequest,
    DeliveryResult,
    DeliveryService,
    TurnDelivery,
)
from footplate.domain.json import JsonObject
from footplate.domain.ports.engine import Claim
from footplate.domain.projects.write_leases import DEFAULT_WAIT_SECONDS
from footplate.domain.sessions.steps import ClaimedStep, StepDelivery, StepKind


def create_step_delivery(service: DeliveryService, claim: Claim, content: Sequence[JsonObject]) -> TurnDelivery | None:
    """Returns what the harness of the turn may deliver: only what the step says. None: the step does not deliver.

    `content` has the message of the commit, in which references were replaced.
    """
    step = claim.step
    if step is None or step.definition.delivery is None:
        return None
    message = "".join(str(block["text"]) for block in content) or None
    return _StepDelivery(service, claim, step, step.definition.delivery, message)


class _StepDelivery(TurnDelivery):
    def __init__(
        self, service: DeliveryService, claim: Claim, step: ClaimedStep, wanted: StepDelivery, message: str | None
    ) -> None:
        self._service = service
        self._claim = claim
        self._step = step
        self._wanted = wanted
        self._message = message

    async def deliver(
        self, updates: Sequence[DeliveryResult], record_update: Callable[[DeliveryResult], Awaitable[None]]
    ) -> DeliveryResult:
        claim, message = self._claim, self._message
        if message is not None and len(message) > MAX_MESSAGE_CHARACTERS:
            raise InvalidRequest(
                f"The message of the commit has {len(message)} characters. It can have at most "
                f"{MAX_MESSAGE_CHARACTERS}.",
                field="message",
                help_text="Refer to a shorter result.",
            )
        request = DeliveryRequest(project_id=self._wanted.project_id, message=message, epoch=claim.epoch)
        delivery = await self._service.find_delivery(claim.organisation, claim.session_id, request)
        deliver = self._service.merge if self._step.definition.kind is StepKind.MERGE else self._service.push
        owner = f"the step {self._step.id} of session {claim.session_id}"
        journal = DeliveryJournal(owner=owner, updates=updates, record_update=record_update)
        target = BranchTarget(branch=self._wanted.branch, wait=DEFAULT_WAIT_SECONDS)
        actor = (claim.author.name if claim.author else None) or "a step"
        return await deliver(actor, delivery, target, journal)
