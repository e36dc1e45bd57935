// Notifications: this browser, the others, and quiet hours. They concern the signed-in member alone.
import { useQuery } from "@tanstack/react-query";

import { notificationSettingsQuery, pushSubscriptionsQuery } from "@/api/queries/notifications";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { Switch } from "@/design/components/switch";

import { BrowserList } from "./browser-list";
import { QuietHoursForm } from "./quiet-hours-form";
import { ThisBrowser } from "./this-browser";
import { useNotificationCommands } from "./use-commands";

export default function NotificationsSection() {
  const settings = useQuery(notificationSettingsQuery);
  const browsers = useQuery(pushSubscriptionsQuery);
  const commands = useNotificationCommands(settings.data, browsers.data);
  const failed = settings.error ?? browsers.error;
  if (failed !== null) {
    return (
      <ErrorPanel
        className="m-6"
        title="Your notifications could not be loaded"
        error={failed}
        onRetry={() => {
          void settings.refetch();
          void browsers.refetch();
        }}
      />
    );
  }
  if (settings.data === undefined || browsers.data === undefined) {
    return <SkeletonRows />;
  }
  return (
    <div className="flex w-full max-w-3xl flex-col gap-8 p-6 max-md:p-4">
      <div className="flex flex-col gap-3">
        <p className="text-muted">
          A call that needs approval, a question, a failure or a merge conflict appears on your screen, also while no
          page of Footplate is open. It names the tool and the session, and nothing of the call.
        </p>
        <Switch checked={settings.data.enabled} disabled={commands.isBusy} onCheckedChange={commands.toggleAll}>
          Send me notifications
        </Switch>
        {!settings.data.enabled && <p className="text-muted">Nothing but tests is sent to any of your browsers.</p>}
      </div>
      <ThisBrowser commands={commands} />
      <BrowserList browsers={browsers.data} commands={commands} />
      <QuietHoursForm
        key={JSON.stringify(settings.data.quiet_hours)}
        settings={settings.data}
        onSaved={commands.adoptSettings}
      />
    </div>
  );
}
