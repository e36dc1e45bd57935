// What a person can do with a session as a whole: pause, play, interrupt, and more in a menu.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import {
  Archive,
  CircleStop,
  Download,
  Ellipsis,
  Flag,
  GitFork,
  Link as LinkIcon,
  Pause,
  Pencil,
  Pin,
  PinOff,
  Play,
  Trash2,
} from "lucide-react";
import { useState } from "react";

import { runAction } from "@/actions/registry";
import { useActions } from "@/actions/use-actions";
import { meQuery } from "@/api/queries/me";
import { pinnedSessionsQuery } from "@/api/queries/sessions";
import type { Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { Menu, MenuContent, MenuItem, MenuLabel, MenuSeparator, MenuTrigger } from "@/design/components/menu";

import { ConfirmDialog, type Confirmation } from "./confirm-dialog";
import { ForkDialog } from "./conversation/fork-dialog";
import { NEWEST_EVENT } from "./conversation/fork-point";
import { exportBundle, exportEvents, exportTranscript } from "./export";
import { createSessionChanges } from "./session-changes";
import { playbackQuery } from "./steps/queries";

const MOVING = new Set(["running", "retrying", "waiting_for_approval", "waiting_for_answer", "waiting_for_result"]);

interface Props {
  session: Session;
  /** The tab has the buttons that pause and play. */
  hasPlayback: boolean;
  onRename: () => void;
}

export function SessionToolbar({ session, hasPlayback, onRename }: Props) {
  const { data: me } = useQuery(meQuery);
  const { data: pinned } = useQuery(pinnedSessionsQuery);
  const { data: playback } = useQuery(playbackQuery(session.id));
  const navigate = useNavigate();
  const changes = createSessionChanges(useQueryClient(), session);
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const [isForking, setForking] = useState(false);
  const mayOperate = me?.permissions.includes("operate") ?? false;
  const isOpen = mayOperate && session.end == null && session.archived_at === null;
  // While the last step before the pause runs, the state is "running".
  const isPaused = session.activity.state === "paused" || playback?.playing === false;
  // A session that has nothing to do can be paused in the menu: its next message then waits.
  const canPause = isOpen && (isPaused || (session.state !== "done" && session.state !== "failed"));
  const canInterrupt = isOpen && MOVING.has(session.activity.state);
  const isPinned = pinned?.data.some((one) => one.id === session.id) ?? false;
  const hasProject = session.project_ids.length > 0;
  const hasTranscript = session.agent.harness === "claude";
  const leave = (): Promise<void> => navigate({ to: "/sessions" });

  useActions({
    ...(isOpen && !isPaused ? { "session.pause": () => void changes.pause() } : {}),
    ...(isOpen && isPaused ? { "session.play": () => void changes.play() } : {}),
    ...(canInterrupt ? { "session.interrupt": () => void changes.interrupt() } : {}),
    ...(isPinned
      ? { "session.unpin": () => void changes.pin(false) }
      : { "session.pin": () => void changes.pin(true) }),
    "session.export-events": () => void exportEvents(session),
    ...(hasTranscript ? { "session.export-transcript": () => void exportTranscript(session) } : {}),
    ...(hasProject ? { "session.export-bundle": () => void exportBundle(session) } : {}),
    ...(mayOperate
      ? {
          "session.rename": onRename,
          "session.fork": () => {
            setForking(true);
          },
          "session.delete": () => {
            setConfirmation({
              title: "Delete this session?",
              text: "Its conversation, files and outputs are deleted for everyone. This cannot be undone.",
              button: "Delete",
              run: async () => {
                if (await changes.remove()) {
                  await leave();
                }
              },
            });
          },
        }
      : {}),
    ...(isOpen
      ? {
          "session.end": () => {
            setConfirmation({
              title: "End this session?",
              text: "A running turn is interrupted, and what waits in the queue is cancelled. An ended session can be read and forked, but not continued.",
              button: "End",
              run: async () => {
                await changes.end();
              },
            });
          },
        }
      : {}),
    ...(mayOperate && session.archived_at === null
      ? {
          "session.archive": () => {
            setConfirmation({
              title: "Archive this session?",
              text: "It leaves the lists and accepts no more messages. It can still be opened with its link, and forked.",
              button: "Archive",
              run: async () => {
                await changes.archive();
              },
            });
          },
        }
      : {}),
  });

  return (
    <div className="flex shrink-0 items-center gap-1 pr-2 pl-1">
      {canInterrupt && (
        <Button
          size="sm"
          variant="quiet"
          title="Stops the running turn; what it did so far stays (I)"
          className="hover:text-failed max-md:size-11 max-md:px-0"
          onClick={() => void changes.interrupt()}
        >
          <CircleStop aria-hidden />
          <span className="max-md:sr-only">Interrupt</span>
        </Button>
      )}
      {canPause && !hasPlayback && (
        <Button
          size="sm"
          variant="quiet"
          title={isPaused ? "Runs what waits in the queue (P)" : "The current step finishes, and no other starts (P)"}
          className="max-md:size-11 max-md:px-0"
          onClick={() => void (isPaused ? changes.play() : changes.pause())}
        >
          {isPaused ? <Play aria-hidden /> : <Pause aria-hidden />}
          <span className="max-md:sr-only">{isPaused ? "Play" : "Pause"}</span>
        </Button>
      )}
      <Menu>
        <MenuTrigger
          render={
            <Button variant="quiet" size="icon" aria-label="More actions of the session" className="max-md:size-11" />
          }
        >
          <Ellipsis />
        </MenuTrigger>
        <MenuContent align="end" className="w-64">
          <MenuItem shortcut="⇧F" disabled={!mayOperate} onClick={() => runAction("session.fork")}>
            <GitFork aria-hidden /> Fork
          </MenuItem>
          <MenuItem shortcut="⇧R" disabled={!mayOperate} onClick={() => runAction("session.rename")}>
            <Pencil aria-hidden /> Rename
          </MenuItem>
          <MenuItem onClick={() => runAction(isPinned ? "session.unpin" : "session.pin")}>
            {isPinned ? <PinOff aria-hidden /> : <Pin aria-hidden />} {isPinned ? "Unpin" : "Pin to the sidebar"}
          </MenuItem>
          <MenuItem
            shortcut="P"
            disabled={!isOpen}
            onClick={() => runAction(isPaused ? "session.play" : "session.pause")}
          >
            {isPaused ? <Play aria-hidden /> : <Pause aria-hidden />} {isPaused ? "Play" : "Pause"}
          </MenuItem>
          <MenuItem shortcut="Y" onClick={() => runAction("global.copy-link")}>
            <LinkIcon aria-hidden /> Copy link
          </MenuItem>
          <MenuSeparator />
          <MenuLabel>Export</MenuLabel>
          <MenuItem onClick={() => runAction("session.export-events")}>
            <Download aria-hidden /> Events
          </MenuItem>
          {hasTranscript && (
            <MenuItem onClick={() => runAction("session.export-transcript")}>
              <Download aria-hidden /> Transcript
            </MenuItem>
          )}
          {hasProject && (
            <MenuItem onClick={() => runAction("session.export-bundle")}>
              <Download aria-hidden /> Commits (git bundle)
            </MenuItem>
          )}
          <MenuSeparator />
          {!mayOperate && <MenuLabel>Your role does not permit to change it</MenuLabel>}
          <MenuItem disabled={!isOpen} onClick={() => runAction("session.end")}>
            <Flag aria-hidden /> End …
          </MenuItem>
          <MenuItem disabled={!mayOperate || session.archived_at !== null} onClick={() => runAction("session.archive")}>
            <Archive aria-hidden /> Archive …
          </MenuItem>
          <MenuItem isDangerous disabled={!mayOperate} onClick={() => runAction("session.delete")}>
            <Trash2 aria-hidden /> Delete …
          </MenuItem>
        </MenuContent>
      </Menu>
      {confirmation !== null && (
        <ConfirmDialog
          confirmation={confirmation}
          onClose={() => {
            setConfirmation(null);
          }}
        />
      )}
      {isForking && (
        <ForkDialog
          session={session}
          point={NEWEST_EVENT}
          onClose={() => {
            setForking(false);
          }}
        />
      )}
    </div>
  );
}
