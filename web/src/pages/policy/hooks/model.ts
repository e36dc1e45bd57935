// The hooks of all layers by event, and what a hook can do there.
import type { Permissions } from "@/api/queries/policy";

import { type HookEntry, listHooks } from "../model";

/** In the order of a turn. */
export const HOOK_EVENTS: Readonly<Record<string, string>> = {
  UserPromptSubmit: "When a prompt arrives. It can end the turn or add text. If it fails, the prompt is blocked.",
  PreToolUse: "Before a call, after the rules. It can deny, ask or allow. If it fails, the call is denied.",
  PostToolUse: "After a successful call. It can add text to the result for the model.",
  Notification: "When a session is about to wait for an approval. It only runs and is recorded.",
  SubagentStop: "When a subagent ends. It only runs and is recorded.",
  PreCompact: "Before a conversation is shortened. It only runs and is recorded.",
  Stop: "At the end of a turn. It can continue the turn, at most five times.",
};

export interface OwnedHook extends HookEntry {
  /** The layer and the name of what has it. */
  owner: string;
}

interface Owner {
  owner: string;
  hooks: Permissions["hooks"] | undefined;
}

/** Only events that have a hook. The owners stay in their order, which is that of the layers. */
export function groupHooks(owners: readonly Owner[]): { event: string; hooks: OwnedHook[] }[] {
  const all = owners.flatMap(({ owner, hooks }) => listHooks(hooks).map((hook) => ({ ...hook, owner })));
  const events = [...new Set([...Object.keys(HOOK_EVENTS), ...all.map(({ event }) => event)])];
  return events
    .map((event) => ({ event, hooks: all.filter((hook) => hook.event === event) }))
    .filter(({ hooks }) => hooks.length > 0);
}
