// Loads code of the dashboard that was not needed before, and says why that was not possible.
import { isFeedOffline } from "./feed";

/** The code of a part of the dashboard could not be loaded. */
export class CodeLoadError extends Error {
  /** Whether the server could not be reached either. */
  readonly isOffline: boolean;

  constructor(isOffline: boolean, cause?: unknown) {
    super(
      isOffline
        ? "The server cannot be reached. Check the network; this part loads by itself when it is back."
        : "The connection was lost for a moment, or the server has a newer version of the dashboard.",
      { cause },
    );
    this.name = "CodeLoadError";
    this.isOffline = isOffline;
  }
}

/** Any response counts. */
async function canReachServer(): Promise<boolean> {
  try {
    await fetch("/livez", { cache: "no-store" });
    return true;
  } catch {
    return false;
  }
}

/**
 * `load` imports a module. Some browsers remember an import that failed and never try it again, so nothing is imported
 * while the server is known to be out of reach.
 */
export async function loadCode<T>(load: () => Promise<T>): Promise<T> {
  if ((!navigator.onLine || isFeedOffline()) && !(await canReachServer())) {
    throw new CodeLoadError(true);
  }
  try {
    return await load();
  } catch (error) {
    throw new CodeLoadError(!(await canReachServer()), error);
  }
}
