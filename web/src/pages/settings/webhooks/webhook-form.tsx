// Creates a webhook endpoint, or changes one.
import { zodResolver } from "@hookform/resolvers/zod";
import { Controller, useForm, useFormContext, useWatch } from "react-hook-form";

import type { WebhookEndpoint } from "@/api/queries/webhooks";
import { Checkbox } from "@/design/components/checkbox";
import { Field } from "@/design/components/field";
import { Input, Textarea } from "@/design/components/input";
import { Select } from "@/design/components/select";

import { EntryForm } from "../work/entry-form";
import { groupsWith } from "./event-types";
import { findField, newValues, valuesOf, webhookSchema, type WebhookValues } from "./model";

const SESSIONS = [
  { value: "all", label: "All sessions" },
  { value: "one", label: "One session" },
] as const;
const EVENTS = [
  { value: "chosen", label: "Those that I choose" },
  { value: "all", label: "All, also types of later versions" },
] as const;
const FORMATS = [
  { value: "standard", label: "The event, as JSON" },
  { value: "slack", label: "A message for a chat" },
] as const;

interface Props {
  /** Null: a new one. */
  endpoint: WebhookEndpoint | null;
  /** Only administrators create endpoints for all sessions. */
  isAdministrator: boolean;
  send: (values: WebhookValues) => Promise<WebhookEndpoint>;
  onSaved: (endpoint: WebhookEndpoint) => void;
  onCancel: () => void;
}

export function WebhookForm({ endpoint, isAdministrator, send, onSaved, onCancel }: Props) {
  const form = useForm<WebhookValues>({
    resolver: zodResolver(webhookSchema),
    defaultValues: endpoint === null ? newValues(isAdministrator ? "all" : "one") : valuesOf(endpoint),
  });
  const { control, register, formState } = form;
  const { errors } = formState;
  const [sessions, format] = useWatch({ control, name: ["sessions", "format"] });
  return (
    <EntryForm
      form={form}
      noun="webhook"
      isNew={endpoint === null}
      send={send}
      onSaved={onSaved}
      findField={findField}
      onCancel={onCancel}
      note={endpoint === null ? "The next page shows its secret, once." : "Pending deliveries use the new values."}
    >
      <fieldset className="flex flex-col gap-4">
        <legend className="sr-only">Webhook</legend>
        <Field label="Address" error={errors.url?.message} hint="It receives a POST request for each event.">
          {(field) => (
            <Input
              {...field}
              {...register("url")}
              inputMode="url"
              spellCheck={false}
              placeholder="https://hooks.example.com/footplate"
            />
          )}
        </Field>
        <Field label="Description" error={errors.description?.message} hint="Optional: what it is for.">
          {(field) => <Textarea {...field} {...register("description")} className="min-h-9" rows={1} />}
        </Field>
        {endpoint === null && (
          <div className="grid grid-cols-2 gap-4 max-md:grid-cols-1">
            <Field label="Sessions" hint={isAdministrator ? undefined : "Only administrators can choose all sessions."}>
              {({ id }) => (
                <Controller
                  control={control}
                  name="sessions"
                  render={({ field }) => (
                    <Select
                      id={id}
                      className="w-full"
                      options={SESSIONS}
                      value={field.value}
                      disabled={!isAdministrator}
                      onChange={field.onChange}
                    />
                  )}
                />
              )}
            </Field>
            {sessions === "one" && (
              <Field label="Session" error={errors.sessionId?.message}>
                {(field) => <Input {...field} {...register("sessionId")} spellCheck={false} placeholder="sesn_…" />}
              </Field>
            )}
          </div>
        )}
        <Field
          label="Body"
          hint={
            format === "slack"
              ? "It contains the title of the session. Slack and other chats accept it."
              : "Signed with the secret of the webhook. It has ids and states, and no content of sessions."
          }
        >
          {({ id }) => (
            <Controller
              control={control}
              name="format"
              render={({ field }) => (
                <Select id={id} className="w-full" options={FORMATS} value={field.value} onChange={field.onChange} />
              )}
            />
          )}
        </Field>
        <Controller
          control={control}
          name="ordered"
          render={({ field }) => (
            <Checkbox checked={field.value} onCheckedChange={field.onChange}>
              Keep the order: an event waits for the earlier ones of its session
            </Checkbox>
          )}
        />
      </fieldset>
      <EventFields />
    </EntryForm>
  );
}

function EventFields() {
  const { control, formState } = useFormContext<WebhookValues>();
  const events = useWatch({ control, name: "events" });
  const types = useWatch({ control, name: "types" });
  const problem = formState.errors.types?.message;
  return (
    <fieldset className="flex flex-col gap-4">
      <legend className="mb-3 font-semibold">Events</legend>
      <Field label="Which events" error={problem}>
        {({ id }) => (
          <Controller
            control={control}
            name="events"
            render={({ field }) => (
              <Select id={id} className="w-full" options={EVENTS} value={field.value} onChange={field.onChange} />
            )}
          />
        )}
      </Field>
      {events === "chosen" && (
        <Controller
          control={control}
          name="types"
          render={({ field }) => (
            <div className="grid grid-cols-3 gap-x-6 gap-y-4 max-lg:grid-cols-2 max-md:grid-cols-1">
              {groupsWith(types).map((group) => (
                <fieldset key={group.title} className="flex flex-col gap-1.5 max-md:gap-2.5">
                  <legend className="mb-1.5 text-sm text-muted">{group.title}</legend>
                  {group.types.map((type) => (
                    <Checkbox
                      key={type}
                      checked={field.value.includes(type)}
                      onCheckedChange={(isChosen) => {
                        field.onChange(isChosen ? [...field.value, type] : field.value.filter((one) => one !== type));
                      }}
                    >
                      <span className="text-sm [overflow-wrap:anywhere]">{type}</span>
                    </Checkbox>
                  ))}
                </fieldset>
              ))}
            </div>
          )}
        />
      )}
    </fieldset>
  );
}
