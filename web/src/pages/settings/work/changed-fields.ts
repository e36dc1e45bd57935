// Which fields of a request differ from what the server has, so that nothing else is sent.
type Fields = Record<string, unknown>;

export function pickChanged(before: Fields, after: Fields): Fields {
  return Object.fromEntries(Object.entries(after).filter(([name, value]) => !isSame(before[name], value)));
}

/** The same JSON, whatever the order of its keys. */
export function isSame(one: unknown, other: unknown): boolean {
  return canonical(one) === canonical(other);
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)))
      : part,
  );
}
