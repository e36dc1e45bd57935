// The typed client of the API. Every page uses it; nothing else calls `fetch`.
import createClient, { type Middleware } from "openapi-fetch";

import { ApiError, OfflineError } from "./errors";
import type { paths } from "./schema";

const CSRF_HEADER = "x-footplate-csrf";
const SAFE_METHODS = new Set(["GET", "HEAD"]);

let csrfToken: string | null = null;
let onSignedOut: () => void = () => undefined;
/** Aborted from a sign-out until the next sign-in. */
let reading = new AbortController();

/** The token of `/v1/me`, which every change that is signed in by cookie must carry. */
export function setCsrfToken(token: string | null): void {
  csrfToken = token;
}

/** Aborts what pages read, and everything that they would read from now on: the server would refuse it. */
export function stopReading(): void {
  reading.abort();
}

export function allowReading(): void {
  if (reading.signal.aborted) {
    reading = new AbortController();
  }
}

/** Called for each response with status 401, except of the sign-in itself. */
export function setSignedOutHandler(handler: () => void): void {
  onSignedOut = handler;
}

export async function apiFetch(request: Request): Promise<Response> {
  if (!SAFE_METHODS.has(request.method) && csrfToken !== null) {
    request.headers.set(CSRF_HEADER, csrfToken);
  }
  const signal =
    SAFE_METHODS.has(request.method) && !isSignIn(request)
      ? AbortSignal.any([request.signal, reading.signal])
      : request.signal;
  let response: Response;
  try {
    response = await fetch(request, { credentials: "same-origin", signal });
  } catch (error) {
    if (signal.aborted) {
      throw error;
    }
    throw new OfflineError();
  }
  if (response.status === 401 && !isSignIn(request)) {
    onSignedOut();
  }
  return response;
}

function isSignIn(request: Request): boolean {
  const path = new URL(request.url).pathname;
  return path === "/v1/me" || path === "/v1/sign_in" || (path === "/v1/browser_sessions" && request.method === "POST");
}

const throwErrors: Middleware = {
  async onResponse({ response }) {
    if (!response.ok) {
      throw await readError(response);
    }
  },
};

export async function readError(response: Response): Promise<ApiError> {
  const body: unknown = await response
    .clone()
    .json()
    .catch(() => null);
  return new ApiError(response.status, body, response.headers.get("request-id"));
}

/** `const { data } = await api.GET("/v1/sessions/{session_id}", { params: … })`. Errors are thrown as `ApiError`. */
export const api = createClient<paths>({ baseUrl: location.origin, fetch: apiFetch });
api.use(throwErrors);

/** Returns the body of a successful response; a response without one is an error. */
export function required<T>(result: { data?: T }): T {
  if (result.data === undefined) {
    throw new Error("The server sent an empty response.");
  }
  return result.data;
}

export interface RequestOptions {
  query?: Record<string, string | number | boolean | readonly string[] | null | undefined>;
  body?: unknown;
  signal?: AbortSignal;
}

/** A request whose route is not in the generated schema. Prefer `api`. */
export async function request<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value === null || value === undefined) {
      continue;
    }
    for (const one of Array.isArray(value) ? (value as readonly string[]) : [value as string | number | boolean]) {
      url.searchParams.append(name, String(one));
    }
  }
  const response = await apiFetch(
    new Request(url, {
      method,
      ...(options.body === undefined
        ? {}
        : { body: JSON.stringify(options.body), headers: { "content-type": "application/json" } }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    }),
  );
  if (!response.ok) {
    throw await readError(response);
  }
  return (response.status === 204 ? undefined : await response.json()) as T;
}
