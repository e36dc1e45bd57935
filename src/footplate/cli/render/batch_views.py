"""Prints batches: tables, results, and a progress bar while the jobs run."""

from collections.abc import Sequence
from typing import Final

from footplate.cli.json_output_models import BatchResult
from footplate.cli.render import terminal_io, value_formatting
from footplate.cli.render.table_printing import Cell, UntrustedText, print_details, print_rows
from footplate.cli.render.terminal_io import quote
from footplate.client.batches import Batch, BatchJob, JobResult

_COLOURS: Final = {
    "completed": "green",
    "ended": "green",
    "running": "green",
    "in_progress": "green",
    "failed": "red",
    "expired": "red",
    "pending": "dim",
}
_OTHER_COLOUR: Final = "yellow"
_MAX_FAILURES: Final = 20


def print_batches(found: Sequence[Batch]) -> None:
    if not found:
        terminal_io.print_note("No batches yet. Start one: footplate batch run jobs.jsonl")
        return
    rows: list[list[Cell]] = [
        [
            batch.id,
            _coloured(batch.status),
            _count_ended(batch),
            str(batch.counts.failed or ""),
            value_formatting.format_age(batch.created_at),
            UntrustedText(batch.name or ""),
        ]
        for batch in found
    ]
    print_rows(["ID", "STATUS", "ENDED", "FAILED", "AGE", "NAME"], rows)


def print_batch(batch: Batch, jobs: Sequence[BatchJob], failures: Sequence[JobResult]) -> None:
    """Prints a batch, with the jobs that wait for a person or a client, and those that failed."""
    ended = None if batch.ended_at is None else (batch.ended_at - batch.created_at).total_seconds()
    print_details(
        {
            "id": batch.id,
            "name": UntrustedText(batch.name or ""),
            "status": _coloured(batch.status),
            "jobs": f"{batch.total} · {describe_counts(batch)}",
            "priority": batch.priority,
            "max_running": str(batch.max_running or ""),
            "repeats": batch.retry_of or "",
            "created": f"{value_formatting.format_age(batch.created_at)} ago",
            "took": "" if ended is None else value_formatting.format_seconds(ended),
        }
    )
    rows: list[list[Cell]] = [[_coloured(job.state), job.custom_id, job.session_id, ""] for job in jobs]
    rows += [
        [_coloured(failed.outcome), failed.custom_id, failed.session_id, UntrustedText(_describe_result(failed))]
        for failed in failures
    ]
    if rows:
        terminal_io.out().print()
        print_rows(["STATE", "JOB", "SESSION", "WHY"], rows)


def print_result(result: JobResult) -> None:
    """Prints one line for a job that has ended."""
    took = value_formatting.format_seconds(result.metrics.duration_seconds)
    line = f"{_coloured(result.outcome, 9)} {result.custom_id} [dim]{result.session_id} {took}[/]"
    terminal_io.out().print(f"{line} {quote(_describe_result(result))}".rstrip(), soft_wrap=True)


def describe_counts(batch: Batch) -> str:
    """Describes how many jobs are in each state, without the states that no job is in."""
    counts = [(name, getattr(batch.counts, name)) for name in ("completed", "failed", "cancelled")]
    counts += [(name, getattr(batch.counts, name)) for name in ("running", "waiting", "pending")]
    return ", ".join(f"{count} {name}" for name, count in counts if count) or "0 ended"


class BatchProgressView:
    """Shows a progress bar on a terminal, and prints a line for each of the first jobs that fail."""

    def __init__(self) -> None:
        self._console = terminal_io.err()
        self._bar = terminal_io.create_progress_bar(self._console)
        self._failures = 0
        self._task = self._bar.add_task("", total=None)

    def start(self, batch: Batch) -> None:
        self._console.print(f"[dim]{batch.id} · {batch.total} {'job' if batch.total == 1 else 'jobs'}[/]")
        self._bar.start()

    def update(self, batch: Batch) -> None:
        self._bar.update(
            self._task, total=batch.total, completed=count_ended(batch), description=describe_counts(batch)
        )

    def job_failed(self, result: JobResult) -> None:
        self._failures += 1
        if self._failures > _MAX_FAILURES:
            return
        line = f"{_coloured(result.outcome, 9)} {result.custom_id} [dim]{result.session_id}[/]"
        self._console.print(f"{line} {quote(_describe_result(result))}".rstrip(), soft_wrap=True)
        if self._failures == _MAX_FAILURES:
            self.show_note("Further jobs that fail are only counted. `footplate batch results --failed` lists them.")

    def stop(self) -> None:
        self._bar.stop()

    def show_note(self, text: str) -> None:
        self._console.print(f"[dim]{quote(text)}[/]")

    def show_batch_result(self, result: BatchResult) -> None:
        batch = result.batch
        took = ((batch.ended_at or batch.created_at) - batch.created_at).total_seconds()
        seconds = f" in {value_formatting.format_seconds(took)}" if batch.ended_at is not None else ""
        status = result.status.replace("_", " ")
        terminal_io.out().print(f"{_coloured(status)} [dim]· {describe_counts(batch)}{seconds}[/]")
        terminal_io.out().print(f"[dim]{batch.id}[/]")
        if result.status == "failed":
            self.show_note(f"Repeat the jobs that failed: footplate batch retry {batch.id}")
        if result.status == "needs_action":
            self.show_note(f"The remaining jobs wait: footplate batch show {batch.id}")


class QuietBatchView(BatchProgressView):
    """`--json`: prints only the result."""

    def start(self, batch: Batch) -> None: ...

    def update(self, batch: Batch) -> None: ...

    def job_failed(self, result: JobResult) -> None: ...

    def stop(self) -> None: ...

    def show_note(self, text: str) -> None: ...

    def show_batch_result(self, result: BatchResult) -> None:
        terminal_io.print_json({**result.model_dump(mode="json", exclude={"batch"}), "batch": result.batch.wire()})


def count_ended(batch: Batch) -> int:
    return batch.counts.completed + batch.counts.failed + batch.counts.cancelled


def _count_ended(batch: Batch) -> str:
    return f"{count_ended(batch)}/{batch.total}"


def _describe_result(result: JobResult) -> str:
    """Returns the first line of the error or the text, and the last line that a failed command printed."""
    first_line = (result.error_message or result.text).strip().partition("\n")[0]
    output = str(result.data.get("stderr") or result.data.get("stdout") or "") if not result.success else ""
    return " · ".join(filter(None, (first_line, output.strip().rpartition("\n")[2])))


def _coloured(state: str, columns: int = 0) -> str:
    return f"[{_COLOURS.get(state, _OTHER_COLOUR)}]{state.replace('_', ' '):<{columns}}[/]"
