// The errors of the API as exceptions, with what a page shows of them.
import type { components } from "./schema";

type ErrorBody = components["schemas"]["Error"];

/** A refusal by the server, or a response that is none of the API's. */
export class ApiError extends Error {
  readonly status: number;
  readonly type: string;
  readonly title: string;
  readonly help: string | null;
  readonly field: string | null;
  readonly docs: string | null;
  readonly requestId: string | null;
  /** All fields of the error. Some have more about the refusal, such as the files of a merge conflict. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: number, body: unknown, requestId: string | null) {
    const detail = isErrorBody(body) ? body.error : null;
    super(detail?.message ?? `The server responded with status ${status}.`);
    this.name = "ApiError";
    this.status = status;
    this.type = detail?.type ?? "api_error";
    this.title = detail?.title ?? "Unexpected response";
    this.help = detail?.help ?? null;
    this.field = detail?.field ?? null;
    this.docs = detail?.docs ?? null;
    this.details = detail ?? {};
    this.requestId = (isErrorBody(body) ? body.request_id : null) ?? requestId;
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

/** The server could not be reached at all. */
export class OfflineError extends Error {
  constructor() {
    super("The server cannot be reached. Check the network; the page continues by itself when it is back.");
    this.name = "OfflineError";
  }
}

function isErrorBody(body: unknown): body is ErrorBody {
  return typeof body === "object" && body !== null && "error" in body && typeof body.error === "object";
}
