"""The registry of existing and deleted sessions, and the environment config that a session keeps."""

from dataclasses import replace

from footplate.domain.json import JsonObject
from footplate.domain.principals import Principal
from footplate.store.session_log import SessionLog

from .cell import AGENT, Cell, message


async def test_the_log_knows_its_sessions_and_those_that_it_deleted(cell: Cell, principal: Principal) -> None:
    log = SessionLog(cell.database)
    kept, gone = await cell.session(principal), await cell.session(principal)
    assert await log.existing([kept, gone, "sesn_never"]) == {kept, gone}
    async with cell.units.unit(principal, None) as unit:
        await unit.delete_session(principal, gone)
    assert await log.existing([kept, gone]) == {kept}
    assert (principal.organisation, gone) in await log.deleted()
    assert await log.cell() == await log.cell() != ""


async def test_a_session_keeps_what_its_environment_said(cell: Cell, principal: Principal) -> None:
    """Even if the environment is changed or deleted, its limits still apply."""
    config: JsonObject = {"type": "cloud", "networking": {"type": "limited"}}
    async with cell.units.unit(principal, None) as unit:
        place = await unit.create_environment(principal, name="p", description=None, config=config, metadata={})
        session, _ = await unit.create_session(
            principal,
            agent={**AGENT},
            environment_id=place.id,
            title=None,
            metadata={},
            context={},
            inputs=[message("one")],
        )
        await unit.update_environment(principal, place.id, lambda old: replace(old, config={"type": "other"}))
        await unit.delete_environment(principal, place.id)
    assert (await cell.claim(session.id, principal)).config.environment == config
    assert (await cell.claim(session.id, principal, "wrkr_2")).config.environment == config
