// Every action of a user, with its id, title, shortcut and scope. The palette, the map of shortcuts and the browser tests
// read it.
export type Scope =
  "global" | "inbox" | "sessions" | "session" | "new" | "schedules" | "usage" | "policy" | "settings" | "health";

export interface ActionDefinition {
  /** Unique, `<scope>.<verb>`, such as `inbox.allow`. Browser tests refer to it. */
  id: string;
  title: string;
  scope: Scope;
  /** Keys as in `a`, `g i` (one after the other), `mod+k` (⌘ on a Mac, Ctrl elsewhere), `shift+j`, `?`. */
  shortcut?: string;
  /** More words by which the palette finds it. */
  keywords?: readonly string[];
  /** Not in the palette, such as moving the selection. */
  isHidden?: boolean;
  /** Whether it runs again and again while its key is held, such as moving the selection. */
  canRepeat?: boolean;
}

const definitions = new Map<string, ActionDefinition>();
/** What an action does now: the last component that offers it. */
const handlers = new Map<string, (() => void)[]>();
const listeners = new Set<() => void>();
let version = 0;

/** Registers actions. Each page does it once, in its `actions.ts`, which `actions/all.ts` imports. */
export function defineActions<const T extends readonly ActionDefinition[]>(actions: T): T {
  for (const action of actions) {
    if (definitions.has(action.id) && !import.meta.hot) {
      throw new Error(`two actions have the id ${action.id}`);
    }
    definitions.set(action.id, action);
  }
  return actions;
}

export function listActions(): ActionDefinition[] {
  return [...definitions.values()];
}

export function getAction(id: string): ActionDefinition {
  const action = definitions.get(id);
  if (action === undefined) {
    throw new Error(`no action has the id ${id}; define it in the page's actions.ts`);
  }
  return action;
}

export function isAvailable(id: string): boolean {
  return (handlers.get(id)?.length ?? 0) > 0;
}

/** Runs the action if a component offers it now. */
export function runAction(id: string): boolean {
  const handler = handlers.get(id)?.at(-1);
  handler?.();
  return handler !== undefined;
}

export function offerAction(id: string, handler: () => void): () => void {
  getAction(id);
  handlers.set(id, [...(handlers.get(id) ?? []), handler]);
  notify();
  return () => {
    handlers.set(
      id,
      (handlers.get(id) ?? []).filter((one) => one !== handler),
    );
    notify();
  };
}

export function subscribeToActions(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function actionsVersion(): number {
  return version;
}

function notify(): void {
  version += 1;
  for (const listener of listeners) {
    listener();
  }
}
