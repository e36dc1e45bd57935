// The map of keyboard shortcuts, made from the registry.
import { type ActionDefinition, isAvailable, listActions } from "../actions/registry";
import { displayShortcut } from "../actions/shortcuts";
import { Dialog, DialogContent } from "../design/components/dialog";
import { Kbd } from "../design/components/kbd";

const TITLES: Record<ActionDefinition["scope"], string> = {
  global: "Everywhere",
  inbox: "Inbox",
  sessions: "Sessions",
  session: "Session",
  new: "New session",
  schedules: "Schedules",
  usage: "Usage",
  policy: "Policy",
  settings: "Settings",
  health: "Health",
};

export default function ShortcutMap({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const actions = listActions().filter((action) => action.shortcut !== undefined);
  // Browser tests read it: each action needs one.
  const ids = listActions()
    .map((action) => action.id)
    .join(" ");
  const scopes = Object.keys(TITLES) as ActionDefinition["scope"][];
  return (
    <Dialog open={open} onOpenChange={onOpenChange}>
      <DialogContent title="Keyboard shortcuts" className="w-[48rem]">
        <div data-actions={ids} className="columns-1 gap-8 pb-2 md:columns-2">
          {scopes.map((scope) => {
            const own = actions.filter((action) => action.scope === scope);
            return own.length === 0 ? null : (
              <section key={scope} className="mb-4 break-inside-avoid">
                <h3 className="mb-1 text-sm font-semibold">{TITLES[scope]}</h3>
                <dl>
                  {own.map((action) => (
                    <div
                      key={action.id}
                      className={`flex h-8 items-center gap-2 ${isAvailable(action.id) ? "" : "text-muted"}`}
                    >
                      <dt className="flex-1 truncate">{action.title}</dt>
                      <dd className="flex gap-1">
                        {displayShortcut(action.shortcut ?? "").map((key, index) => (
                          <Kbd key={index}>{key}</Kbd>
                        ))}
                      </dd>
                    </div>
                  ))}
                </dl>
              </section>
            );
          })}
        </div>
      </DialogContent>
    </Dialog>
  );
}
