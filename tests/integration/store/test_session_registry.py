"""The registry of existing and deleted sessions, and the environment config that a session keeps."""

from dataclasses import replace

from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.store.session_existence import SessionRegistry

from .cell import AGENT, Cell, message


async def test_existing_and_deleted_sessions_are_listed(cell: Cell, principal: Principal) -> None:
    log = SessionRegistry(cell.database)
    existing, deleted = await cell.session(principal), await cell.session(principal)
    assert await log.existing([existing, deleted, "sesn_never"]) == {existing, deleted}
    async with cell.units.unit(principal, None) as unit:
        await unit.delete_session(principal, deleted)
    assert await log.existing([existing, deleted]) == {existing}
    assert (principal.organisation, deleted) in await log.deleted()
    assert await log.cell() == await log.cell() != ""


async def test_a_session_keeps_the_config_of_its_environment(cell: Cell, principal: Principal) -> None:
    """Even if the environment is changed or deleted, its limits still apply."""
    config: JsonObject = {"type": "cloud", "networking": {"type": "limited"}}
    async with cell.units.unit(principal, None) as unit:
        environment = await unit.create_environment(principal, name="p", description=None, config=config, metadata={})
        session, _ = await unit.create_session(
            principal,
            agent={**AGENT},
            environment_id=environment.id,
            title=None,
            metadata={},
            context={},
            inputs=[message("one")],
        )
        await unit.update_environment(principal, environment.id, lambda old: replace(old, config={"type": "other"}))
        await unit.delete_environment(principal, environment.id)
    assert (await cell.claim(session.id, principal)).config.environment == config
    assert (await cell.claim(session.id, principal, "wrkr_2")).config.environment == config
