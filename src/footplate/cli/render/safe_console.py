"""A Rich console that escapes control and misleading characters in all text, in case a caller did not."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from footplate.domain.text.visible_text import neutralise


class SafeConsole(Console):
    """Prints control sequences only for styles. Text that is already escaped is not changed."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(neutralise(each) if isinstance(each, str) else each for each in objects), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else neutralise(segment.text)
            yield segment if text is segment.text else Segment(text, segment.style, segment.control)
