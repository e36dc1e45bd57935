// The address of the tab: range, tree, state, file, lines and layout.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";

import { compact } from "@/frame/search";
import type { DiffLayout } from "../search";
import { type ChangeState, type DiffRange, formatLines, formatRange, type Lines, parseLines } from "./ranges";

const LAYOUT_KEY = "footplate.diff-layout";

function readLayout(): DiffLayout {
  try {
    return localStorage.getItem(LAYOUT_KEY) === "split" ? "split" : "unified";
  } catch {
    return "unified";
  }
}

export type ChangesNavigation = ReturnType<typeof useChangesNavigation>;

export function useChangesNavigation(sessionId: string) {
  const search = useSearch({ from: "/frame/sessions/$sessionId" });
  const navigate = useNavigate();
  const [preferred, setPreferred] = useState(readLayout);

  function change(next: Partial<Record<keyof typeof search, string | undefined>>, { replace = true } = {}): void {
    void navigate({
      to: "/sessions/$sessionId",
      params: { sessionId },
      search: compact({ ...search, ...next }) as typeof search,
      replace,
      resetScroll: false,
    });
  }

  return {
    search,
    lines: parseLines(search.lines),
    layout: search.layout ?? preferred,
    selectFile: (path: string | undefined): void => {
      change({ path, lines: undefined });
    },
    selectLines: (path: string, lines: Lines | null): void => {
      change({ path, lines: lines === null ? undefined : formatLines(lines) });
    },
    showRange: (range: DiffRange): void => {
      change({ turn: formatRange(range), path: undefined, lines: undefined, state: undefined }, { replace: false });
    },
    showComment: (turnId: string | null, projectId: string | null, path: string, lines: Lines): void => {
      change({
        turn: turnId ?? undefined,
        project: projectId ?? undefined,
        state: undefined,
        path,
        lines: formatLines(lines),
      });
    },
    showProject: (project: string | undefined): void => {
      change({ project, path: undefined, lines: undefined });
    },
    showState: (state: ChangeState | undefined): void => {
      change({ state, path: undefined, lines: undefined });
    },
    showLayout: (layout: DiffLayout): void => {
      setPreferred(layout);
      change({ layout });
      try {
        localStorage.setItem(LAYOUT_KEY, layout);
      } catch {
        // The choice is then lost with the page.
      }
    },
  };
}
