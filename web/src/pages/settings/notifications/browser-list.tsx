// The browsers in which the member is notified, with what became of the last notification.
import { Trash2 } from "lucide-react";

import type { PushSubscriptionEntry } from "@/api/queries/notifications";
import { cn } from "@/design/classes";
import { Button } from "@/design/components/button";
import { Time } from "@/design/components/time";
import { SafeText } from "@/design/text/text";

import { nameBrowser } from "./browser";
import type { NotificationCommands } from "./use-commands";

const STATES: Record<PushSubscriptionEntry["state"], string | null> = {
  active: null,
  signed_out: "Signed out. Sign in there to be notified again.",
  failing: "The last notification failed.",
  disabled: "All notifications failed for 5 days. Turn them off and on there.",
};

interface Props {
  browsers: readonly PushSubscriptionEntry[];
  commands: NotificationCommands;
}

export function BrowserList({ browsers, commands }: Props) {
  if (browsers.length === 0) {
    return null;
  }
  return (
    <section aria-labelledby="your-browsers" className="flex flex-col gap-2">
      <h2 id="your-browsers" className="font-semibold">
        Your browsers
      </h2>
      <ul aria-labelledby="your-browsers" className="border-t">
        {browsers.map((browser) => (
          <Entry key={browser.id} browser={browser} commands={commands} />
        ))}
      </ul>
    </section>
  );
}

function Entry({ browser, commands }: { browser: PushSubscriptionEntry; commands: NotificationCommands }) {
  const { state, problem } = browser;
  const name = nameBrowser(browser.user_agent);
  const isHere = browser.id === commands.current?.id;
  return (
    <li className="flex min-h-9 items-center gap-3 border-b py-1.5">
      <div className="min-w-0 flex-1">
        <p className="flex items-baseline gap-2">
          <SafeText className="truncate">{name}</SafeText>
          {isHere && <span className="shrink-0 text-sm text-muted">this browser</span>}
        </p>
        {STATES[state] !== null && (
          <p className={cn("text-sm", state === "signed_out" ? "text-muted" : "text-failed")}>
            {STATES[state]}
            {problem !== null && <SafeText>{` ${problem}`}</SafeText>}
          </p>
        )}
      </div>
      <span className="shrink-0 text-sm text-muted">
        {browser.last_success_at === null ? (
          "none has arrived yet"
        ) : (
          <>
            last one <Time value={browser.last_success_at} />
          </>
        )}
      </span>
      <Button
        variant="quiet"
        size="icon"
        disabled={commands.isBusy}
        aria-label={`Remove ${name}${isHere ? ", this browser" : ""}`}
        onClick={() => {
          commands.remove(browser);
        }}
      >
        <Trash2 aria-hidden />
      </Button>
    </li>
  );
}
