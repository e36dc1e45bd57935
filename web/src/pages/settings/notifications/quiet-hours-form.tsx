// Quiet hours: the time of each day in which nothing is sent.
import { zodResolver } from "@hookform/resolvers/zod";
import { Controller, useForm, useWatch } from "react-hook-form";

import { useAction } from "@/actions/use-actions";
import { type NotificationSettings, updateNotificationSettings } from "@/api/queries/notifications";
import { Button } from "@/design/components/button";
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";
import { Switch } from "@/design/components/switch";
import { showToast } from "@/design/components/toast";

import { findField, quietHoursSchema, type QuietHoursValues, toQuietHours, valuesOf } from "./quiet-hours";

const TIMEZONES_ID = "notification-timezones";

interface Props {
  settings: NotificationSettings;
  onSaved: (settings: NotificationSettings) => void;
}

export function QuietHoursForm({ settings, onSaved }: Props) {
  const form = useForm<QuietHoursValues>({
    resolver: zodResolver(quietHoursSchema),
    defaultValues: valuesOf(settings.quiet_hours, Intl.DateTimeFormat().resolvedOptions().timeZone),
  });
  const { control, register, formState } = form;
  const { errors, isDirty, isSubmitting } = formState;
  const isOn = useWatch({ control, name: "isOn" });

  async function save(values: QuietHoursValues): Promise<void> {
    try {
      onSaved(await updateNotificationSettings({ quiet_hours: toQuietHours(values) }));
      showToast({ title: values.isOn ? "Quiet hours saved" : "Quiet hours removed" });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      form.setError(findField(message), { message: message.replace(/^[\w.]+: /, "") });
    }
  }
  function submit(): void {
    void form.handleSubmit(save)();
  }
  useAction("settings.save-quiet-hours", submit, { isEnabled: isDirty });

  return (
    <form
      aria-labelledby="quiet-hours"
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <h2 id="quiet-hours" className="font-semibold">
        Quiet hours
      </h2>
      <Controller
        control={control}
        name="isOn"
        render={({ field }) => (
          <Switch checked={field.value} onCheckedChange={field.onChange}>
            Be silent at a time of each day
          </Switch>
        )}
      />
      {isOn && (
        <>
          <div className="grid grid-cols-[8rem_8rem_1fr] gap-4 max-md:grid-cols-2">
            <Field label="From" error={errors.start?.message}>
              {(control_) => <Input {...control_} {...register("start")} type="time" />}
            </Field>
            <Field label="To" error={errors.end?.message}>
              {(control_) => <Input {...control_} {...register("end")} type="time" />}
            </Field>
            <div className="max-md:col-span-2">
              <Field label="Time zone" error={errors.timezone?.message}>
                {(control_) => <Input {...control_} {...register("timezone")} list={TIMEZONES_ID} spellCheck={false} />}
              </Field>
            </div>
          </div>
          <datalist id={TIMEZONES_ID}>
            {Intl.supportedValuesOf("timeZone").map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          <p className="text-sm text-muted">When they end, you receive what still needs you then.</p>
        </>
      )}
      {errors.root !== undefined && (
        <p role="alert" className="text-sm text-failed">
          {errors.root.message}
        </p>
      )}
      {isDirty && (
        <div>
          <Button type="submit" variant="primary" disabled={isSubmitting}>
            Save quiet hours
          </Button>
        </div>
      )}
    </form>
  );
}
