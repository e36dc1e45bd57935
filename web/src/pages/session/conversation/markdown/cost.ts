// Finds text whose Markdown would take too long to parse, or would nest too deeply to be shown. It is shown as it is.
const LONGEST = 200_000;
const LONGEST_LINE = 20_000;
const DEEPEST = 24;
/** A long run of marks, such as ten thousand brackets, is no writing. */
const RUN = /([[\]*_>~`!(<&|])\1{99,}|(?:[[*_>!(<] ?){200,}/;
const QUOTES = /^[ \t]*(?:>[ \t]?){24,}/m;

export function isTooHard(text: string): boolean {
  return (
    text.length > LONGEST ||
    RUN.test(text) ||
    QUOTES.test(text) ||
    text.split("\n").some((line) => line.length > LONGEST_LINE || depthOf(line) > DEEPEST) ||
    countMarks(text) > 20_000
  );
}

/** How deep a line of a list can be nested: two spaces or one marker per level. */
function depthOf(line: string): number {
  const start = /^[\s>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*/.exec(line)?.[0] ?? "";
  return Math.floor(start.length / 4) + (start.match(/[-*+.)]/g)?.length ?? 0);
}

function countMarks(text: string): number {
  return text.match(/[[\]*_`<]/g)?.length ?? 0;
}
