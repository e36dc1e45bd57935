"""Registers all commands with their help texts. `docs/cli.md` lists the exit codes.

This module and its imports must load quickly, because every command waits for them at startup.
"""

from typing import Annotated

import typer

from footplate.cli.commands import (
    agents_and_environments,
    api_keys,
    approvals,
    audit,
    batches,
    comments,
    config,
    delivery,
    deployment_health,
    diff,
    events,
    files,
    inbox,
    limits,
    members,
    models,
    notifications,
    objects,
    policy,
    projects,
    questions,
    schedules,
    server_operations,
    sessions,
    sign_in,
    steps,
    templates,
    terminals,
    transcripts,
    triggers,
    usage,
    webhooks,
)
from footplate.cli.commands.help_formatter import CLIENT, RESOURCES, SERVERS, SESSIONS, GroupedHelp

app = typer.Typer(
    name="footplate",
    cls=GroupedHelp,
    help="The open, self-hosted home for coding-agent sessions.",
    epilog="Exit codes: 0 success, 1 failure (see its message), 2 invalid usage. `footplate run --help` lists all.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(requested: bool) -> None:
    if requested:
        server_operations.version()
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """The open, self-hosted home for coding-agent sessions."""


app.command(rich_help_panel=SESSIONS, short_help="Send a message to an agent and watch it work.")(sessions.run)
app.command(rich_help_panel=SESSIONS, short_help="Watch a session's turn from start to end.")(sessions.attach)
app.command(rich_help_panel=SESSIONS)(sessions.ls)
app.command(rich_help_panel=SESSIONS)(sessions.show)
app.command(rich_help_panel=SESSIONS)(sessions.logs)
app.command(rich_help_panel=SESSIONS, short_help="Print the changes of all sessions as they happen.")(events.events)
app.command(rich_help_panel=SESSIONS, short_help="Create a session that starts with another session's history.")(
    sessions.fork
)
app.command(rich_help_panel=SESSIONS, short_help="Show the file changes of a session as a patch or a summary.")(
    diff.diff
)
app.command(rich_help_panel=SESSIONS, short_help="Apply a session's changes to your checkout.")(delivery.apply)
app.command(rich_help_panel=SESSIONS, short_help="Merge a session's changes into a branch of its project.")(
    delivery.merge
)
app.command(rich_help_panel=SESSIONS, short_help="Push a session's changes as a branch of its project.")(delivery.push)
app.command(rich_help_panel=SESSIONS, short_help="Export a session's changes as a branch or a patch.")(delivery.export)
app.command("import", rich_help_panel=SESSIONS, short_help="Import Claude Code transcripts as sessions.")(
    transcripts.import_transcripts
)
app.command(rich_help_panel=SESSIONS, short_help="Save a session as a Claude Code transcript on this machine.")(
    transcripts.pull
)
app.command(rich_help_panel=SESSIONS, short_help="Change who can see a session, and who owns it.")(sessions.share)
app.command(rich_help_panel=SESSIONS, short_help="Interrupt a session's running turn.")(sessions.interrupt)
app.command(rich_help_panel=SESSIONS, short_help="End a session: it can be read and forked.")(sessions.end)
app.add_typer(steps.steps, name="steps", rich_help_panel=SESSIONS)
app.command(rich_help_panel=SESSIONS)(steps.play)
app.command(rich_help_panel=SESSIONS)(steps.pause)
app.command("next", rich_help_panel=SESSIONS)(steps.run_next)
app.add_typer(steps.queue, name="queue", rich_help_panel=SESSIONS)
app.add_typer(batches.batches, name="batch", rich_help_panel=SESSIONS)
app.add_typer(schedules.schedules, name="schedules", rich_help_panel=SESSIONS)
app.command(rich_help_panel=SESSIONS, short_help="List the calls that need approval.")(approvals.approvals)
app.command(rich_help_panel=SESSIONS, short_help="Approve pending calls.")(approvals.approve)
app.command(rich_help_panel=SESSIONS, short_help="Deny pending calls.")(approvals.deny)
app.command(rich_help_panel=SESSIONS, short_help="List the questions that agents ask.")(questions.questions)
app.command(rich_help_panel=SESSIONS, short_help="Answer a question of an agent.")(questions.answer)
app.add_typer(inbox.inbox, name="inbox", rich_help_panel=SESSIONS)
app.add_typer(notifications.notifications, name="notifications", rich_help_panel=SESSIONS)
app.add_typer(comments.comments, name="comments", rich_help_panel=SESSIONS)
app.command(rich_help_panel=SESSIONS, short_help="Pin sessions for yourself.")(inbox.pin)
app.command(rich_help_panel=SESSIONS)(inbox.unpin)
app.command(rich_help_panel=SESSIONS)(sessions.archive)
app.command(rich_help_panel=SESSIONS)(sessions.rm)
app.add_typer(agents_and_environments.agents, name="agents", rich_help_panel=RESOURCES)
app.command(rich_help_panel=RESOURCES, short_help="List the models that agents can use.")(models.models)
app.command(rich_help_panel=SERVERS, short_help="List the workers of the deployment.")(deployment_health.workers)
app.command(rich_help_panel=SERVERS, short_help="List the task queues with what waits.")(deployment_health.queues)
app.command(rich_help_panel=SERVERS, short_help="Show the versions of server and workers.")(deployment_health.versions)
app.add_typer(agents_and_environments.environments, name="environments", rich_help_panel=RESOURCES)
app.add_typer(projects.projects, name="projects", rich_help_panel=RESOURCES)
app.add_typer(files.files, name="files", rich_help_panel=RESOURCES)
app.add_typer(templates.templates, name="templates", rich_help_panel=RESOURCES)
app.command(rich_help_panel=SERVERS, short_help="Start all services on this machine. Ctrl-C stops them.")(
    server_operations.dev
)
app.command(rich_help_panel=SERVERS, short_help="Check the services, programs and settings that sessions need.")(
    server_operations.doctor
)
app.command(
    rich_help_panel=SERVERS,
    short_help="Print shell commands that set the address and API key of a running `footplate dev`.",
)(server_operations.env)
app.command(rich_help_panel=CLIENT, short_help="Sign in to a server with your browser.")(sign_in.login)
app.command(rich_help_panel=CLIENT, short_help="Sign out: revoke the API key of a profile.")(sign_in.logout)
app.command(rich_help_panel=CLIENT, short_help="Show as whom you are signed in.")(sign_in.whoami)
app.command(rich_help_panel=SESSIONS, short_help="Open the dashboard in your browser.")(sign_in.dashboard)
app.command(rich_help_panel=SERVERS, short_help="Serve the HTTP API.")(server_operations.api)
app.command(rich_help_panel=SERVERS, short_help="Run turns.")(server_operations.worker)
app.command(rich_help_panel=SERVERS, short_help="Migrate the database to the schema of this version.")(
    server_operations.migrate
)
app.command(rich_help_panel=SERVERS, short_help="Remove unused objects from the object store.")(server_operations.gc)
app.add_typer(objects.objects, name="objects", rich_help_panel=SERVERS)
app.add_typer(api_keys.app, name="api-keys", rich_help_panel=SERVERS)
app.add_typer(members.members, name="members", rich_help_panel=SERVERS)
app.add_typer(members.teams, name="teams", rich_help_panel=SERVERS)
app.add_typer(limits.limits, name="limits", rich_help_panel=SERVERS)
app.add_typer(triggers.triggers, name="triggers", rich_help_panel=SESSIONS)
app.add_typer(terminals.terminals, name="terminals", rich_help_panel=SESSIONS)
app.add_typer(webhooks.webhooks, name="webhooks", rich_help_panel=RESOURCES)
app.command(rich_help_panel=RESOURCES, short_help="Show turns, tokens, cost and tool calls.")(usage.usage)
app.add_typer(audit.audit, name="audit", rich_help_panel=RESOURCES)
app.add_typer(policy.app, name="policy", rich_help_panel=CLIENT)
app.add_typer(config.app, name="config", rich_help_panel=CLIENT)
app.command(rich_help_panel=CLIENT)(server_operations.version)
