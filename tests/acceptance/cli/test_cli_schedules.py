"""Schedules from the command line."""

from tests.acceptance.cli.cli_cell import Cell, fits


async def test_a_schedule_is_managed(cell: Cell) -> None:
    times = ("--cron", "0 9 * * 1-5", "--timezone", "Europe/Berlin")
    created = await cell.run("schedules", "create", *times, "--name", "build", "--shell", "echo built", "--json")
    schedule = fits("schedule", created.out)
    preview = fits("schedule-preview", (await cell.run("schedules", "preview", times[1], *times[2:], "--json")).out)
    assert preview["upcoming_runs_at"] == schedule["schedule"]["upcoming_runs_at"]
    refused = await cell.run("schedules", "preview", "@daily")
    assert (refused.code, "five fields" in refused.err) == (1, True), refused
    changed = fits("schedule", (await cell.run("schedules", "update", "build", "--overlap", "skip", "--json")).out)
    assert (changed["id"], changed["overlap_policy"]) == (schedule["id"], "skip")
    run = fits("schedule-run", (await cell.run("schedules", "run", "build", "--json")).out)
    assert (run["deployment_id"], run["error"]) == (schedule["id"], None)
    assert run in fits("schedule-runs", (await cell.run("schedules", "runs", "build", "--json")).out)
    paused = await cell.run("schedules", "pause", "build")
    assert paused.code == 0, paused
    detail = fits("schedule-detail", (await cell.run("schedules", "show", "build", "--json")).out)
    (listed,) = fits("schedules", (await cell.run("schedules", "ls", "--status", "paused", "--json")).out)
    assert (detail["schedule"]["id"], listed["id"]) == (schedule["id"], schedule["id"])
    removed = await cell.run("schedules", "rm", "build")
    assert removed.code == 0, removed
    missing = await cell.run("schedules", "run", "build")
    assert (missing.code, "build" in missing.err) == (1, True), missing
