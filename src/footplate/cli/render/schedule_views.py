"""Prints schedules and their runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from footplate.cli.render import terminal_io, value_formatting
from footplate.cli.render.table_printing import Cell, UntrustedText, print_details, print_rows, print_widest_rows
from footplate.client import Deployment, DeploymentRun, SchedulePreview


def print_schedules(found: Sequence[Deployment], manual_runs: Sequence[DeploymentRun]) -> None:
    """`manual_runs`: the newest runs on request."""
    if not found:
        terminal_io.print_note(
            'No schedules yet. Create one: footplate schedules create --cron "0 9 * * 1-5" "Check the build"'
        )
        return
    rows: list[list[Cell]] = [
        [
            one.id,
            _coloured(one.status),
            UntrustedText(_describe_times(one)),
            _format_next(one),
            _format_last(one, manual_runs),
            UntrustedText(one.name),
        ]
        for one in found
    ]
    print_rows(["ID", "STATUS", "TIMES", "NEXT", "LAST", "NAME"], rows)


def print_preview(preview: SchedulePreview) -> None:
    for time in preview.upcoming_runs_at:
        terminal_io.print_result(_format_in_zone(time, preview.timezone))
    terminal_io.print_note(f"Time zone: {preview.timezone}")


@dataclass(frozen=True, slots=True)
class ShownRun:
    run: DeploymentRun
    outcome: str
    """Of its session, or why it has none. Markup."""
    reason: str = ""
    schedule: str = ""
    """The name of the schedule, in a list of the runs of all."""


def print_schedule(schedule: Deployment, runs: Sequence[ShownRun], member_name: str) -> None:
    upcoming = schedule.schedule.upcoming_runs_at if schedule.schedule else []
    shown: dict[str, Cell] = {
        "id": schedule.id,
        "name": UntrustedText(schedule.name),
        "description": UntrustedText(schedule.description or ""),
        "status": "removed" if schedule.archived_at else _coloured(schedule.status),
        "paused": UntrustedText(_describe_pause(schedule)),
        "times": UntrustedText(_describe_times(schedule)),
        "next": ", ".join(_format_time(time, schedule) for time in upcoming),
        "last": _format_last(schedule, [shown.run for shown in runs]),
        "overlap": schedule.overlap_policy,
        "catch_up": f"{schedule.catch_up_seconds} s",
        "agent": f"{schedule.agent.id} (version {schedule.agent.version})",
        "environment": schedule.environment_id,
        "work": UntrustedText(_describe_work(schedule)),
        "runs_as": UntrustedText(member_name, f" ({schedule.runs_as})") if member_name else schedule.runs_as,
    }
    print_details({name: value for name, value in shown.items() if value not in ("", UntrustedText(""))})
    if runs:
        terminal_io.out().print()
        print_runs(runs)


def print_runs(found: Sequence[ShownRun]) -> None:
    """Prints a table. On a narrow terminal, the schedule is in the same column as the reason."""
    if not found:
        terminal_io.print_note("No runs yet.")
        return
    wide_rows: list[list[Cell]] = []
    rows: list[list[Cell]] = []
    has_names = any(shown.schedule for shown in found)
    for shown in found:
        run, reason = shown.run, shown.reason.strip().partition("\n")[0]
        time = run.trigger_context.scheduled_at
        age = value_formatting.format_age(run.created_at)
        wide_rows.append(
            [
                run.id,
                "manual" if time is None else f"{time:%F %H:%M} UTC",
                age,
                run.session_id or "",
                *([UntrustedText(shown.schedule)] if has_names else []),
                shown.outcome,
                UntrustedText(reason),
            ]
        )
        last = ": ".join(filter(None, (shown.schedule, reason)))
        rows.append([age, run.session_id or "", shown.outcome, UntrustedText(last)])
    named = ["SCHEDULE"] if has_names else []
    print_widest_rows(
        (["RUN", "TIME", "AGE", "SESSION", *named, "OUTCOME", "WHY"], wide_rows),
        (["AGE", "SESSION", "OUTCOME", *(named or ["WHY"])], rows),
    )


def describe_next(schedule: Deployment) -> str:
    """Describes when the schedule starts the next session, or why it does not."""
    if schedule.archived_at is not None:
        return "It is removed. Its sessions and runs stay."
    if schedule.schedule is None:
        return f"It has no times. Start a session with: footplate schedules run {schedule.id}"
    if schedule.status == "paused":
        return f"It is paused. Resume it with: footplate schedules resume {schedule.id}"
    return f"Next: {_format_next(schedule)}" if schedule.schedule.upcoming_runs_at else "It is being set up."


def _describe_times(schedule: Deployment) -> str:
    cron = schedule.schedule
    return "" if cron is None else f"{cron.expression} {cron.timezone}"


def _describe_pause(schedule: Deployment) -> str:
    reason = schedule.paused_reason
    if reason is None:
        return ""
    error = reason.get("error") or {}
    return str(error.get("message") or error.get("type") or "by a member")


def _describe_work(schedule: Deployment) -> str:
    texts = [
        str(block.get("text", "")) for event in schedule.initial_events for block in event.get("content", []) if block
    ]
    texts += [str(step.get("command") or step.get("kind")) for step in schedule.steps]
    return value_formatting.title_from_prompt(" · ".join(texts))


def _format_next(schedule: Deployment) -> str:
    upcoming = schedule.schedule.upcoming_runs_at if schedule.schedule and schedule.status == "active" else []
    return _format_time(upcoming[0], schedule) if upcoming else ""


def _format_last(schedule: Deployment, runs: Sequence[DeploymentRun]) -> str:
    """Formats when the last run was, scheduled or manual."""
    times = [run.created_at for run in runs if run.deployment_id == schedule.id]
    if schedule.schedule and schedule.schedule.last_run_at:
        times.append(schedule.schedule.last_run_at)
    return f"{value_formatting.format_age(max(times))} ago" if times else ""


def _format_time(time: datetime, schedule: Deployment) -> str:
    return _format_in_zone(time, schedule.schedule.timezone if schedule.schedule else "UTC")


def _format_in_zone(time: datetime, timezone: str) -> str:
    """Formats a time in a time zone, or in UTC if this machine does not know the zone."""
    try:
        zone = ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError):
        return f"{time:%F %H:%M} UTC"
    return f"{time.astimezone(zone):%F %H:%M}"


def _coloured(status: str) -> str:
    return f"[{'green' if status == 'active' else 'yellow'}]{status}[/]"
