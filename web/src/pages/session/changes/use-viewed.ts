// Which files a person has viewed, kept in this browser. A file whose changes are different by now counts as not viewed.
import { useState } from "react";

import type { FileChange } from "./parse-file";

const MOST_KEPT = 2_000;

/** A short fingerprint (FNV-1a) of at most a hundred thousand characters, and the length. */
function fingerprint(text: string): string {
  let hash = 0x811c9dc5;
  const step = Math.max(1, Math.floor(text.length / 100_000));
  for (let index = 0; index < text.length; index += step) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return `${(hash >>> 0).toString(36)}.${text.length.toString(36)}`;
}

const marks = new WeakMap<FileChange, string>();

function markOf(file: FileChange): string {
  const known = marks.get(file) ?? fingerprint(file.source);
  marks.set(file, known);
  return known;
}

function read(key: string): Record<string, string> {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "{}") as Record<string, string>;
  } catch {
    return {}; // storage is disabled, or has something else
  }
}

export function useViewed(sessionId: string) {
  const key = `footplate.viewed.${sessionId}`;
  const [viewed, setViewed] = useState(() => read(key));
  return {
    isViewed: (file: FileChange): boolean => Object.hasOwn(viewed, file.id) && viewed[file.id] === markOf(file),
    setViewed: (file: FileChange, isViewed: boolean): void => {
      const { [file.id]: _, ...rest } = viewed;
      const next = isViewed ? { ...rest, [file.id]: markOf(file) } : rest;
      setViewed(next);
      try {
        localStorage.setItem(key, JSON.stringify(Object.fromEntries(Object.entries(next).slice(-MOST_KEPT))));
      } catch {
        // The marks are then lost with the page.
      }
    },
  };
}
