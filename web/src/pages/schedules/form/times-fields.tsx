// When a schedule runs: its times in words and the next runs, as the server reports them.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Controller, useFormContext, useWatch } from "react-hook-form";

import { ApiError } from "@/api/errors";
import { type OverlapPolicy, previewQuery } from "@/api/queries/schedules";
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";
import { Select } from "@/design/components/select";
import { Time } from "@/design/components/time";

import { describeCron } from "../cron-words";
import { formatInZone, formatSeconds, OVERLAP } from "../describe";
import { findField, type ScheduleValues } from "./model";

const TYPING_MS = 400;
const TIMEZONES_ID = "schedule-timezones";
const STARTS = [
  { value: "times", label: "At set times" },
  { value: "request", label: "Only on request" },
] as const;
const OVERLAPS = (Object.keys(OVERLAP) as OverlapPolicy[]).map((value) => ({ value, label: OVERLAP[value].title }));

export function TimesFields() {
  const { control, register, formState } = useFormContext<ScheduleValues>();
  const [starts, expression, timezone, overlap, catchUp] = useWatch({
    control,
    name: ["starts", "expression", "timezone", "overlap", "catchUp"],
  });
  const preview = usePreview(starts === "times", expression.trim(), timezone.trim());
  const { errors } = formState;
  const refusedField = findField(preview.error);
  const refusal = preview.error instanceof ApiError ? preview.error.message.replace(/^[\w.]+: /, "") : undefined;
  return (
    <fieldset className="flex flex-col gap-4">
      <legend className="mb-3 font-semibold">Times</legend>
      <Field label="It starts">
        {({ id }) => (
          <Controller
            control={control}
            name="starts"
            render={({ field }) => (
              <Select id={id} className="w-full" options={STARTS} value={field.value} onChange={field.onChange} />
            )}
          />
        )}
      </Field>
      {starts === "times" && (
        <>
          <div className="grid grid-cols-2 gap-4 max-md:grid-cols-1">
            <Field
              label="Cron expression"
              error={errors.expression?.message ?? (refusedField === "expression" ? refusal : undefined)}
              hint={describeCron(expression) ?? "Minute, hour, day of month, month, day of week."}
            >
              {(control_) => (
                <Input {...control_} {...register("expression")} className="font-mono" spellCheck={false} />
              )}
            </Field>
            <Field
              label="Time zone"
              error={errors.timezone?.message ?? (refusedField === "timezone" ? refusal : undefined)}
            >
              {(control_) => <Input {...control_} {...register("timezone")} list={TIMEZONES_ID} spellCheck={false} />}
            </Field>
            <datalist id={TIMEZONES_ID}>
              {Intl.supportedValuesOf("timeZone").map((name) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          </div>
          <Preview
            times={preview.data?.upcoming_runs_at}
            timezone={preview.data?.timezone ?? "UTC"}
            error={preview.error}
          />
          <div className="grid grid-cols-2 gap-4 max-md:grid-cols-1">
            <Field
              label="If an earlier session still works"
              hint={OVERLAP[overlap].text}
              error={errors.overlap?.message}
            >
              {({ id }) => (
                <Controller
                  control={control}
                  name="overlap"
                  render={({ field }) => (
                    <Select
                      id={id}
                      className="w-full"
                      options={OVERLAPS}
                      value={field.value}
                      onChange={field.onChange}
                    />
                  )}
                />
              )}
            </Field>
            <Field
              label="How late a missed run may start, in seconds"
              hint={
                /^\d+$/.test(catchUp)
                  ? `Up to ${formatSeconds(Number(catchUp))} late, for example after an outage.`
                  : undefined
              }
              error={errors.catchUp?.message}
            >
              {(control_) => <Input {...control_} {...register("catchUp")} inputMode="numeric" />}
            </Field>
          </div>
        </>
      )}
    </fieldset>
  );
}

/** Asks the server for the next times, when the person has stopped typing. */
function usePreview(isEnabled: boolean, expression: string, timezone: string) {
  const [wanted, setWanted] = useState({ expression, timezone });
  useEffect(() => {
    const timer = setTimeout(() => {
      setWanted({ expression, timezone });
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [expression, timezone]);
  return useQuery({
    ...previewQuery(wanted.expression, wanted.timezone),
    enabled: isEnabled && wanted.expression !== "" && wanted.timezone !== "",
  });
}

interface PreviewProps {
  times: readonly string[] | undefined;
  timezone: string;
  error: Error | null;
}

function Preview({ times, timezone, error }: PreviewProps) {
  return (
    <div role="status" aria-label="Next runs" className="min-h-33 rounded-md bg-surface px-3 py-2">
      <p className="text-sm font-medium">Next runs</p>
      {error !== null ? (
        <p className="text-muted">
          {error instanceof ApiError ? "Correct the expression or the time zone to see them." : error.message}
        </p>
      ) : (
        <ol>
          {times?.map((time, index) => (
            <li key={time}>
              {formatInZone(time, timezone)}
              {index === 0 && (
                <span className="text-muted">
                  {" "}
                  · <Time value={time} />
                </span>
              )}
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}
