"""The command line is readable at any width and safe to script: pipes, documented exit codes, JSON by schema.

The screens are checked in real terminals (tmux) at three widths, with colour and without. A sample checks fewer.
"""

import tempfile
from pathlib import Path
from typing import Final

from bench.prove.figure import Figure, require, time_limit
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.terminal import (
    cli_commands,
    exit_codes,
    json_schemas,
    killed_client,
    model_scripts,
    screen_checks,
    shell_completion,
)
from bench.support.terminal.cli_user import CliUser
from bench.support.terminal.tmux import Tmux
from footplate.cli.render.terminal_io import Exit

_MAX_COMPLETION_SECONDS: Final = 0.2


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    with tempfile.TemporaryDirectory(prefix="footplate-") as directory:
        home = Path(directory)
        projects = {"FOOTPLATE_PROJECTS_ROOT": str(home)}
        async with open_cluster(environment=projects) as cluster, Client(cluster) as client, Tmux(home) as tmux:
            await model_scripts.install_scripts(cluster)
            return await _check_command_line(CliUser(cluster, home), client, tmux, quick=quick)


async def _check_command_line(person: CliUser, client: Client, tmux: Tmux, *, quick: bool) -> Figure:
    session_id = await person.session("[[script:hello]]")
    asking_agent_id = await client.agent(name="asker", tools=[exit_codes.custom_tool()])
    require(holds=(await person.run("attach", session_id)).code == 0, otherwise="the first turn did not complete")

    ids = {session_id}
    completion_seconds, offered = await shell_completion.measure_completion(person, "attach", times=3 if quick else 60)
    require(holds=ids <= offered, otherwise=f"completion offers {offered} and not {ids}")
    await shell_completion.check_tab_key(tmux, person, session_id)

    all_commands = cli_commands.list_commands()
    scenes = screen_checks.screen_cases(session_id)
    screens = await screen_checks.check_screens(
        tmux, person, scenes[:2] if quick else scenes, screen_checks.WIDTHS[:1] if quick else screen_checks.WIDTHS
    )
    pipes = await screen_checks.check_pipes(person, tmux)
    helps = await screen_checks.check_help(
        tmux,
        person,
        all_commands[::12] if quick else all_commands,
        screen_checks.WIDTHS[:1] if quick else screen_checks.WIDTHS,
    )
    documented_codes = exit_codes.documented_codes()
    require(
        holds=documented_codes == set(Exit),
        otherwise=f"docs/cli.md lists the exit codes {documented_codes}; there are {[*Exit]}",
    )
    codes = await exit_codes.produce_codes(
        person, asking_agent_id, documented_codes & {0, 2, 6} if quick else documented_codes
    )
    values, command_count = await json_schemas.validate_json_output(person, client, quick=quick)
    survived = await killed_client.check_kills(person, client, times=1 if quick else 40)

    completion_p95 = shell_completion.p95(completion_seconds)
    widths = "60 columns" if quick else f"{', '.join(map(str, screen_checks.WIDTHS))} columns"
    headline = (
        f"{screens + helps} screens intact, {len(codes)} of {len(documented_codes)} exit codes, {values} "
        f"JSON values fit their "
        "schemas"
    )
    if completion_p95 >= time_limit(_MAX_COMPLETION_SECONDS, quick=quick):
        headline = (
            f"completion of live ids takes p95 {completion_p95 * 1000:.0f} ms (limit "
            f"{_MAX_COMPLETION_SECONDS * 1000:.0f})"
        )
    return Figure(
        headline=headline,
        summary=f"{screens} screens and {helps} of --help at {widths}, with colour and without, {pipes} pipes: none "
        f"torn or half drawn; {len(codes)} of {len(documented_codes)} exit codes; {values} JSON values of "
        f"{command_count} commands fit "
        f"their schemas; {survived}; completion of live ids p95 {completion_p95 * 1000:.0f} ms (limit "
        f"{_MAX_COMPLETION_SECONDS * 1000:.0f})",
        holds=completion_p95 < time_limit(_MAX_COMPLETION_SECONDS, quick=quick),
        details={
            "screens": screens,
            "helps": helps,
            "exit_codes": [*sorted(codes)],
            "json_values": values,
            "completion_ms": [round(each * 1000) for each in sorted(completion_seconds)],
        },
    )
