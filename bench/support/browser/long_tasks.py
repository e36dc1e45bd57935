"""Measures the tasks of a page that block it for more than 50 ms, while a list is scrolled."""

from dataclasses import dataclass
from typing import Final

from playwright.async_api import Page

LONG_MS: Final = 50
_OBSERVE: Final = """() => {
  window.longTasks = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      window.longTasks.push(entry.duration);
    }
  }).observe({ type: "longtask" });
}"""
_TAKE: Final = "() => window.longTasks.splice(0)"
_SCROLL: Final = """async ([selector, seconds, pixels]) => {
  const element = document.querySelector(selector);
  const end = performance.now() + seconds * 1000;
  let frames = 0;
  while (performance.now() < end) {
    element.scrollTop += pixels;
    frames += 1;
    await new Promise(requestAnimationFrame);
  }
  return frames / seconds;
}"""
_SCROLL_TO_END: Final = """async ([selector, wanted, seconds]) => {
  const element = document.querySelector(selector);
  const end = performance.now() + seconds * 1000;
  while (element.scrollHeight < wanted && performance.now() < end) {
    element.scrollTop = element.scrollHeight;
    await new Promise(requestAnimationFrame);
  }
  return element.scrollHeight;
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrolled:
    long_tasks: tuple[float, ...]
    """Their durations in milliseconds."""
    frames_per_second: float


async def observe_long_tasks(page: Page) -> None:
    await page.evaluate(_OBSERVE)


async def take_long_tasks(page: Page) -> tuple[float, ...]:
    """Returns the durations of the long tasks since the last call, in milliseconds."""
    # An observer reports a task only after it has ended.
    await page.wait_for_timeout(200)
    return tuple(await page.evaluate(_TAKE))


async def scroll(page: Page, selector: str, *, seconds: float, pixels: int) -> Scrolled:
    """Scrolls by some pixels in each frame."""
    await take_long_tasks(page)
    frames = await page.evaluate(_SCROLL, [selector, seconds, pixels])
    return Scrolled(long_tasks=await take_long_tasks(page), frames_per_second=float(frames))


async def scroll_until(page: Page, selector: str, *, height: int, seconds: float) -> int:
    """Stays at the end of a list that grows there, until it has this height. Returns the height."""
    return int(await page.evaluate(_SCROLL_TO_END, [selector, height, seconds]))
