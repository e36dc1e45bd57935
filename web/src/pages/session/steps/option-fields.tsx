// What all kinds of steps have: a name, a condition, and what happens if they fail.
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";
import { Select } from "@/design/components/select";
import { type StepDraft, TEXT_KINDS } from "./draft";

interface Props {
  draft: StepDraft;
  isOpen: boolean;
  /** What the server says about one of these fields. */
  errorOf: (...names: string[]) => string | undefined;
  onChange: (change: Partial<StepDraft>) => void;
}

export function OptionFields({ draft, isOpen, errorOf, onChange }: Props) {
  return (
    <details open={isOpen} className="group">
      <summary className="cursor-pointer py-1 text-muted hover:text-text">Name, condition and failures</summary>
      <div className="flex flex-col gap-3 pt-2">
        <Field label="Name" hint="Later steps refer to it, such as ${steps.tests.stdout}." error={errorOf("name")}>
          {(control) => (
            <Input
              {...control}
              value={draft.name}
              onValueChange={(name) => {
                onChange({ name });
              }}
            />
          )}
        </Field>
        <Field
          label="Runs only if"
          hint="Such as steps.tests.exit_code != 0. Empty: always."
          error={errorOf("condition")}
        >
          {(control) => (
            <Input
              {...control}
              className="font-mono text-sm"
              value={draft.condition}
              onValueChange={(condition) => {
                onChange({ condition });
              }}
            />
          )}
        </Field>
        <div className="flex flex-wrap gap-3">
          <Field label="If it fails" error={errorOf("on_failure")}>
            {({ id }) => (
              <Select
                id={id}
                options={[
                  { value: "stop", label: "Pause the queue" },
                  { value: "continue", label: "Run the next step" },
                  { value: "retry", label: "Try again" },
                ]}
                value={draft.onFailure}
                onChange={(onFailure) => {
                  onChange({ onFailure: onFailure ?? "stop" });
                }}
                className="w-48"
              />
            )}
          </Field>
          {draft.onFailure === "retry" && (
            <Field label="Attempts" error={errorOf("max_attempts")}>
              {(control) => (
                <Input
                  {...control}
                  inputMode="numeric"
                  className="w-24"
                  value={draft.attempts}
                  onValueChange={(attempts) => {
                    onChange({ attempts });
                  }}
                />
              )}
            </Field>
          )}
          {TEXT_KINDS.includes(draft.kind) && draft.kind !== "external" && (
            <Field label="Time limit in seconds" error={errorOf("timeout_seconds")}>
              {(control) => (
                <Input
                  {...control}
                  inputMode="numeric"
                  className="w-40"
                  value={draft.timeout}
                  onValueChange={(timeout) => {
                    onChange({ timeout });
                  }}
                />
              )}
            </Field>
          )}
        </div>
      </div>
    </details>
  );
}
