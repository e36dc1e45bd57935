"""Prints a session's log with the position, id and type of each event, so that a user can name one to `fork --at`."""

from footplate.cli.render.terminal_io import escape_shown
from footplate.cli.render.turn_views import TextView
from footplate.client.response_models import Event


class LogWithIdsView(TextView):
    def __init__(self) -> None:
        super().__init__(show_input=True, lines_on_stdout=True)

    def show_event(self, event: Event) -> None:
        if event.id is not None:
            shown = escape_shown(f"{event.position or '':>4}  {event.id}  {event.type}")
            self._screen.print_line(f"[dim]{shown}[/]")
        super().show_event(event)
