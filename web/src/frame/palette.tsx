// The command palette: every action that is possible now, and recent sessions.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { useState } from "react";

import { runAction } from "../actions/registry";
import { displayShortcut } from "../actions/shortcuts";
import { useAvailableActions } from "../actions/use-actions";
import { sessionsQuery } from "../api/queries/sessions";
import { describeActivity } from "../api/session-state";
import { Kbd } from "../design/components/kbd";
import { State } from "../design/components/state";
import { SafeText } from "../design/text/text";
import { Dialog as Base } from "@base-ui/react/dialog";
import { cn } from "../design/classes";
import { BACKDROP, POPUP, POPUP_ITEM } from "../design/components/popup";

const SHOWN_SESSIONS = 20;
const ITEM = cn(POPUP_ITEM, "aria-selected:bg-hover");

export default function Palette({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  return (
    <Base.Root open={open} onOpenChange={onOpenChange}>
      <Base.Portal>
        <Base.Backdrop className={BACKDROP} />
        <Base.Popup
          className={cn(
            POPUP,
            "fixed top-[12vh] left-1/2 w-[40rem] max-w-[calc(100vw-1rem)] -translate-x-1/2 overflow-hidden",
          )}
        >
          <Base.Title className="sr-only">Search and commands</Base.Title>
          <PaletteContent
            onClose={() => {
              onOpenChange(false);
            }}
          />
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

function PaletteContent({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const navigate = useNavigate();
  const actions = useAvailableActions().filter((action) => action.isHidden !== true);
  const { data } = useInfiniteQuery(sessionsQuery());
  const sessions = data?.pages[0]?.data.slice(0, SHOWN_SESSIONS) ?? [];

  function run(task: () => void): void {
    onClose();
    // After the dialog gave the focus back.
    setTimeout(task);
  }

  return (
    <Command label="Search and commands" loop>
      <Command.Input
        value={text}
        onValueChange={setText}
        placeholder="Search actions and sessions"
        className="h-12 w-full border-b bg-transparent px-4 text-lg outline-none"
      />
      <Command.List className="max-h-[60vh] overflow-auto p-1 [&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:py-1 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:text-muted">
        <Command.Empty className="px-4 py-8 text-center text-muted">Nothing matches.</Command.Empty>
        <Command.Group heading="Actions">
          {actions.map((action) => (
            <Command.Item
              key={action.id}
              value={action.id}
              keywords={[action.title, ...(action.keywords ?? [])]}
              className={ITEM}
              onSelect={() => {
                run(() => runAction(action.id));
              }}
            >
              <span className="flex-1">{action.title}</span>
              {action.shortcut !== undefined &&
                displayShortcut(action.shortcut).map((key, index) => <Kbd key={index}>{key}</Kbd>)}
            </Command.Item>
          ))}
        </Command.Group>
        {sessions.length > 0 && (
          <Command.Group heading="Sessions">
            {sessions.map((session) => (
              <Command.Item
                key={session.id}
                value={session.id}
                keywords={[session.title ?? "", session.agent.name]}
                className={ITEM}
                onSelect={() => {
                  run(() => void navigate({ to: "/sessions/$sessionId", params: { sessionId: session.id } }));
                }}
              >
                <State state={session.state} iconOnly />
                <SafeText className="min-w-0 flex-1 truncate">{session.title ?? "Untitled"}</SafeText>
                <span className="truncate text-sm text-muted">{describeActivity(session.activity)}</span>
              </Command.Item>
            ))}
          </Command.Group>
        )}
      </Command.List>
    </Command>
  );
}
