// Reads the search parameters of an address. What is not valid is dropped, so that an old link still opens.
export type RawSearch = Record<string, unknown>;

export function readText(search: RawSearch, name: string): string | undefined {
  const value = search[name];
  if (typeof value === "number" || typeof value === "boolean") {
    return String(value);
  }
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function readNumber(search: RawSearch, name: string): number | undefined {
  const value = Number(search[name] ?? Number.NaN);
  return Number.isFinite(value) ? value : undefined;
}

export function readFlag(search: RawSearch, name: string): true | undefined {
  return search[name] === true || search[name] === "true" || undefined;
}

export function readOneOf<const T extends string>(
  search: RawSearch,
  name: string,
  allowed: readonly T[],
): T | undefined {
  return allowed.find((one) => one === search[name]);
}

/** Drops undefined values, so that the address stays short. */
export function compact<T extends object>(search: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/** A path of this application. Anything else, such as another site, becomes `/`. */
export function safeReturnPath(path: string | undefined): string {
  if (path === undefined || !path.startsWith("/") || path.startsWith("//") || path.includes("\\")) {
    return "/";
  }
  const url = new URL(path, location.origin);
  return url.origin === location.origin ? `${url.pathname}${url.search}${url.hash}` : "/";
}
