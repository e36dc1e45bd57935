// Submits the result of an external step: the work was done outside of Footplate.
import { useState } from "react";

import { Button } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Textarea } from "@/design/components/input";
import type { StepOutcome } from "./changes";
import type { Step } from "./model";

interface Props {
  step: Step;
  refusal: string | null;
  onSubmit: (step: Step, outcome: StepOutcome) => Promise<unknown>;
}

export function ResultForm({ step, refusal, onSubmit }: Props) {
  const [text, setText] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);

  async function submit(status: StepOutcome["status"]): Promise<void> {
    setSending(true);
    try {
      await onSubmit(step, { status, stdout: text });
      setError(null);
    } catch (failure) {
      setError(failure);
    } finally {
      setSending(false);
    }
  }

  return (
    <form
      className="flex flex-col gap-2 rounded-md bg-waiting-soft p-3"
      onSubmit={(event) => {
        event.preventDefault();
        void submit("completed");
      }}
    >
      <p className="font-medium text-waiting">The queue waits until somebody does this work and submits its result.</p>
      <Field label="Result" hint={refusal ?? "Later steps can use it. It may be empty."}>
        {(control) => (
          <Textarea
            {...control}
            id={`result-${step.id}`}
            aria-label="Result"
            value={text}
            disabled={refusal !== null}
            onChange={(event) => {
              setText(event.target.value);
            }}
          />
        )}
      </Field>
      {error !== null && <ErrorPanel title="The result was not accepted" error={error} />}
      <div className="flex gap-2 max-md:[&>button]:h-11 max-md:[&>button]:flex-1">
        <Button type="submit" disabled={refusal !== null || isSending}>
          Submit as done
        </Button>
        <Button variant="danger" disabled={refusal !== null || isSending} onClick={() => void submit("failed")}>
          Submit as failed
        </Button>
      </div>
    </form>
  );
}
