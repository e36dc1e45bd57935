// The state of a review, and its actions: files, selected lines, comments.
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useId, useRef, useState } from "react";

import { useActions } from "@/actions/use-actions";
import type { Session } from "@/api/session-state";
import { copyText } from "@/design/components/copy";
import { showToast } from "@/design/components/toast";
import { buildItem, findPlace, linesOf } from "./diff-items";
import { download } from "./download";
import type { Reveal } from "./diff-view";
import type { ListedFile } from "./file-list";
import type { FileChange } from "./parse-file";
import type { Comment } from "./queries";
import { describeLines, type Lines, parseLines } from "./ranges";
import { moveLines, readLines } from "./rows";
import { rangeIndex } from "./toolbar";
import type { Changes } from "./use-changes";
import { useComments } from "./use-comments";
import type { ChangesNavigation } from "./use-navigation";
import { useViewed } from "./use-viewed";

export function useReview(session: Session, changes: Changes, navigation: ChangesNavigation, canOperate: boolean) {
  const navigate = useNavigate();
  const comments = useComments(session.id);
  const viewed = useViewed(session.id);
  const fieldId = useId();
  const [box, setBox] = useState<{ fileId: string; lines: Lines } | null>(null);
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [scrolledTo, setScrolledTo] = useState<string | null>(null);
  const [isTrayOpen, setTrayOpen] = useState(false);
  const [isMergeOpen, setMergeOpen] = useState(false);
  const { path } = navigation.search;
  const [reveal, setReveal] = useState<Reveal | null>(() =>
    path === undefined ? null : { fileId: path, lines: parseLines(navigation.search.lines), align: "start" },
  );

  const { files } = changes.patch;
  const { commentScope: scope, turns, range } = changes;
  const filesById = new Map(files.map((file) => [file.id, file]));
  const inScope =
    scope === null
      ? []
      : comments.all.filter((one) => one.turn_id === scope.turnId && one.project_id === scope.projectId);
  const commentsOf = (file: { path: string; oldPath: string | null }): Comment[] =>
    inScope.filter((one) => one.path === file.path || (one.side === "old" && one.path === file.oldPath));
  /** Null: the diff does not have its code any more. Undefined: it belongs to another diff, or is not loaded yet. */
  function placeOf(comment: Comment): Lines | null | undefined {
    if (!inScope.includes(comment)) {
      return undefined;
    }
    const file = files.find((one) => commentsOf(one).includes(comment));
    return file === undefined ? (changes.patch.isComplete ? null : undefined) : findPlace(file, comment);
  }
  // A file that is marked as viewed is closed, until it is opened again.
  const isCollapsed = (file: FileChange): boolean => viewed.isViewed(file) !== toggled.has(file.id);
  const items = files.map((file) =>
    buildItem(file, commentsOf(file), box?.fileId === file.id ? box.lines : null, isCollapsed(file)),
  );
  const listed: ListedFile[] =
    files.length > 0 || changes.patch.isComplete
      ? files.map((file) => ({ ...file, commentCount: commentsOf(file).length, isViewed: viewed.isViewed(file) }))
      : changes.listed.map((file) => ({
          id: file.path,
          path: file.path,
          kind: file.status,
          isBinary: file.binary,
          added: file.added,
          deleted: file.deleted,
          commentCount: 0,
          isViewed: false,
        }));
  const selected = path === undefined ? undefined : filesById.get(path);
  const activeFile = selected ?? (scrolledTo === null ? undefined : filesById.get(scrolledTo)) ?? files[0];
  const activeId = scrolledTo ?? activeFile?.id ?? null;
  const selection =
    selected === undefined || navigation.lines === null ? null : { fileId: selected.id, lines: navigation.lines };

  // A key that is held is faster than the address.
  const latest = useRef(selection);
  const linesText = navigation.search.lines;
  useEffect(() => {
    const lines = parseLines(linesText);
    latest.current = path === undefined || lines === null ? null : { fileId: path, lines };
  }, [path, linesText]);

  const isClosed = session.archived_at !== null || session.end !== null;
  const cannotCommentAtAll = !canOperate
    ? "Your role does not permit comments."
    : isClosed
      ? "The session has ended, so its agent cannot get comments."
      : scope === null
        ? "Comments belong to one turn or to all changes. Choose one of them, in all states."
        : null;
  const isShown =
    selected === undefined || navigation.lines === null || readLines(selected.diff, navigation.lines) !== null;
  const cannotComment = cannotCommentAtAll ?? (isShown ? null : "The diff does not show these lines.");

  function openFile(id: string): void {
    navigation.selectFile(id);
    setScrolledTo(id);
    setReveal({ fileId: id, lines: null, align: "start" });
  }
  function moveFile(step: 1 | -1): void {
    const index = files.findIndex((file) => file.id === activeId);
    const next = files[Math.min(Math.max(index + step, 0), files.length - 1)];
    if (next !== undefined) {
      openFile(next.id);
    }
  }
  function moveLine(step: 1 | -1, extend: boolean): void {
    const known = latest.current;
    const id = known?.fileId ?? activeId;
    const file = id === null ? undefined : filesById.get(id);
    if (file === undefined || isCollapsed(file)) {
      return;
    }
    const lines = moveLines(file.diff, known?.lines ?? null, step, { extend });
    if (lines !== null) {
      latest.current = { fileId: file.id, lines };
      navigation.selectLines(file.id, lines);
      setScrolledTo(file.id);
      setReveal({ fileId: file.id, lines, align: "nearest" });
    }
  }
  function moveTurn(step: 1 | -1): void {
    const index = rangeIndex(range, turns);
    const next = index === -1 ? (step === 1 ? 0 : turns.length - 1) : index + step;
    const turn = turns[next];
    navigation.showRange(turn === undefined ? { kind: "all" } : { kind: "turn", turnId: turn.id });
  }
  function toggleFile(file: FileChange): void {
    const next = new Set(toggled);
    if (!next.delete(file.id)) {
      next.add(file.id);
    }
    setToggled(next);
  }
  function viewFile(file: FileChange, isViewed: boolean): void {
    const next = new Set(toggled);
    next.delete(file.id);
    setToggled(next);
    viewed.setViewed(file, isViewed);
  }
  function openBox(fileId: string, lines: Lines): void {
    if (cannotCommentAtAll === null) {
      setBox({ fileId, lines });
      setScrolledTo(fileId);
      navigation.selectLines(fileId, lines);
      setReveal({ fileId, lines: { ...lines, start: lines.end }, align: "nearest" });
    }
  }
  function copyLink(): void {
    const what = selection === null ? "the file" : describeLines(selection.lines);
    void copyText(location.href).then((isCopied) => {
      if (isCopied) {
        showToast({ title: `Link to ${what} copied` });
      }
    });
  }
  const sendComments = (): void => {
    void comments.send(comments.own);
  };
  const openMerge = (): void => {
    setMergeOpen(true);
  };
  const toggleTray = (): void => {
    setTrayOpen(!isTrayOpen);
  };
  const compare = (): void => {
    void navigate({ to: "/compare", search: { sessions: session.id } });
  };
  const downloadPatch = (): void => {
    if (changes.downloadUrl !== null) {
      download(changes.downloadUrl, `${session.id}.patch`);
    }
  };

  useActions({
    ...(files.length > 0
      ? {
          "changes.next-file": () => {
            moveFile(1);
          },
          "changes.previous-file": () => {
            moveFile(-1);
          },
          "changes.next-line": () => {
            moveLine(1, false);
          },
          "changes.previous-line": () => {
            moveLine(-1, false);
          },
          "changes.extend-down": () => {
            moveLine(1, true);
          },
          "changes.extend-up": () => {
            moveLine(-1, true);
          },
          "changes.toggle-viewed": () => {
            const file = activeId === null ? undefined : filesById.get(activeId);
            if (file !== undefined) {
              viewFile(file, !viewed.isViewed(file));
            }
          },
          "changes.toggle-layout": () => {
            navigation.showLayout(navigation.layout === "split" ? "unified" : "split");
          },
          "changes.find-file": () => {
            document.getElementById(fieldId)?.focus();
          },
          "changes.copy-link": copyLink,
          "changes.download-patch": downloadPatch,
        }
      : {}),
    ...(selection !== null && cannotComment === null
      ? {
          "changes.comment": () => {
            openBox(selection.fileId, selection.lines);
          },
        }
      : {}),
    ...(turns.length > 0
      ? {
          "changes.next-turn": () => {
            moveTurn(1);
          },
          "changes.previous-turn": () => {
            moveTurn(-1);
          },
          "changes.all-turns": () => {
            navigation.showRange({ kind: "all" });
          },
        }
      : {}),
    ...(comments.all.length > 0 ? { "changes.show-comments": toggleTray } : {}),
    ...(comments.own.length > 0 && canOperate ? { "changes.send-comments": sendComments } : {}),
    "changes.merge": openMerge,
    "changes.compare": compare,
  });

  return {
    comments,
    viewed,
    fieldId,
    box,
    items,
    filesById,
    listed,
    activeId,
    selection,
    reveal,
    cannotComment,
    cannotCommentAtAll,
    isCollapsed,
    commentsOf,
    placeOf,
    isTrayOpen,
    isMergeOpen,
    viewedCount: files.filter((file) => viewed.isViewed(file)).length,
    /** Another diff starts at its top. */
    viewKey: `${navigation.search.turn ?? ""} ${changes.tree?.project_id ?? ""} ${changes.state ?? ""}`,
    openFile,
    toggleFile,
    viewFile,
    openBox,
    copyLink,
    sendComments,
    openMerge,
    toggleTray,
    compare,
    downloadPatch,
    setActive: setScrolledTo,
    selectLines: navigation.selectLines,
    closeMerge: (): void => {
      setMergeOpen(false);
    },
    closeBox: (): void => {
      setBox(null);
    },
    showComment: (comment: Comment): void => {
      const lines = placeOf(comment) ?? linesOf(comment);
      navigation.showComment(comment.turn_id, comment.project_id, comment.path, lines);
      setScrolledTo(comment.path);
      setReveal({ fileId: comment.path, lines, align: "center" });
    },
    /** Returns whether it was saved. */
    saveComment: async (file: FileChange, lines: Lines, text: string, isSent: boolean): Promise<boolean> => {
      if (scope === null) {
        return false;
      }
      const added = await comments.add({ ...scope, path: file.path, lines }, text);
      if (added === null) {
        return false;
      }
      return isSent ? comments.send([added]) : true;
    },
  };
}
