// Whether this browser shows notifications, or why it cannot.
import { BellOff } from "lucide-react";

import { Button } from "@/design/components/button";
import { Switch } from "@/design/components/switch";

import { OBSTACLES } from "./browser";
import type { NotificationCommands } from "./use-commands";

export function ThisBrowser({ commands }: { commands: NotificationCommands }) {
  const { obstacle, current, isBusy } = commands;
  return (
    <section aria-labelledby="this-browser" className="flex flex-col gap-3">
      <h2 id="this-browser" className="font-semibold">
        This browser
      </h2>
      {obstacle === null ? (
        <div className="flex flex-wrap items-center gap-x-6 gap-y-2">
          <Switch checked={current !== null} disabled={isBusy} onCheckedChange={commands.toggleHere}>
            Notify me in this browser
          </Switch>
          {current !== null && (
            <Button
              disabled={isBusy}
              onClick={() => {
                commands.test(current);
              }}
            >
              Send a test
            </Button>
          )}
        </div>
      ) : (
        <div className="flex gap-3 rounded-md bg-surface p-3">
          <BellOff aria-hidden className="mt-0.5 size-4 shrink-0 text-muted" />
          <div>
            <p className="font-medium">{OBSTACLES[obstacle].title}</p>
            <p className="text-muted">{OBSTACLES[obstacle].text}</p>
          </div>
        </div>
      )}
    </section>
  );
}
