// Loads a patch and parses it while it arrives, so that the first files of a large one are shown at once.
import { useEffect, useState } from "react";

import { apiFetch, readError } from "@/api/client";
import { FEED_LIVE, onFeedChange } from "@/api/feed";
import { type FileChange, parseFile } from "./parse-file";
import { PatchSplitter } from "./patch-text";

export interface Patch {
  files: readonly FileChange[];
  isComplete: boolean;
  error: unknown;
}

/** Parsing gives way to the page after this long. */
const SLICE_MS = 20;
/** The first files are shown at once, the others in larger steps. */
const PROGRESS_MS = 250;
const MOST_CACHED = 6;
const NOTHING: Patch = { files: [], isComplete: false, error: null };
const cache = new Map<string, readonly FileChange[]>();

/** `revision`: what must change for the patch to be read again. `url` null: nothing is loaded. */
export function usePatch(url: string | null, revision: string): Patch & { retry: () => void } {
  const [attempt, setAttempt] = useState(0);
  const [loaded, setLoaded] = useState<{ url: string; patch: Patch } | null>(null);
  useEffect(() => {
    if (url === null) {
      return undefined;
    }
    const controller = new AbortController();
    const known = cache.get(url);
    const show = (patch: Patch): void => {
      if (!controller.signal.aborted) {
        setLoaded({ url, patch });
      }
    };
    loadPatch(url, known, controller.signal, (files) => {
      // A patch that is shown is replaced at once, when the new one is complete.
      if (known === undefined) {
        show({ files, isComplete: false, error: null });
      }
    }).then(
      (files) => {
        remember(url, files);
        show({ files, isComplete: true, error: null });
      },
      (error: unknown) => {
        show({ files: known ?? [], isComplete: known !== undefined, error });
      },
    );
    return () => {
      controller.abort();
    };
  }, [url, revision, attempt]);

  const hasFailed = loaded?.url === url && loaded.patch.error !== null;
  useEffect(
    () =>
      hasFailed
        ? onFeedChange((change) => {
            if (change.type === FEED_LIVE) {
              setAttempt((count) => count + 1);
            }
          })
        : undefined,
    [hasFailed],
  );

  const cached = url === null ? undefined : cache.get(url);
  const patch =
    loaded?.url === url
      ? loaded.patch
      : cached === undefined
        ? NOTHING
        : { files: cached, isComplete: true, error: null };
  return {
    ...patch,
    retry: () => {
      setAttempt(attempt + 1);
    },
  };
}

function remember(url: string, files: readonly FileChange[]): void {
  cache.delete(url);
  cache.set(url, files);
  const oldest = cache.keys().next().value;
  if (cache.size > MOST_CACHED && oldest !== undefined) {
    cache.delete(oldest);
  }
}

async function loadPatch(
  url: string,
  known: readonly FileChange[] | undefined,
  signal: AbortSignal,
  onProgress: (files: readonly FileChange[]) => void,
): Promise<readonly FileChange[]> {
  const response = await apiFetch(new Request(new URL(url, location.origin), { signal }));
  if (!response.ok) {
    throw await readError(response);
  }
  const files: FileChange[] = [];
  const ids = new Set<string>();
  const knownById = new Map(known?.map((file) => [file.id, file]));
  const splitter = new PatchSplitter();
  let sliceStart = performance.now();
  let shownAt = Number.NEGATIVE_INFINITY;
  const add = async (sources: readonly string[]): Promise<void> => {
    for (const source of sources) {
      const file = parseFile(source, ids);
      const before = knownById.get(file.id);
      files.push(before?.source === source ? before : file);
      if (performance.now() - sliceStart > SLICE_MS) {
        if (sliceStart - shownAt > PROGRESS_MS) {
          shownAt = sliceStart;
          onProgress([...files]);
        }
        await new Promise((resolve) => setTimeout(resolve));
        sliceStart = performance.now();
      }
    }
  };
  if (response.body !== null) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        break;
      }
      await add(splitter.add(value));
    }
  }
  await add(splitter.finish());
  // Nothing changed: the same list keeps what is shown as it is.
  return known?.length === files.length && files.every((file, index) => file === known[index]) ? known : files;
}
