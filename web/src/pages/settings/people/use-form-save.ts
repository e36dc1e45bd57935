// Saves a form: an error of the server goes to the field that it is about, or is shown for the whole form.
import { useState } from "react";
import type { FieldValues, Path, UseFormReturn } from "react-hook-form";

import { useAction } from "@/actions/use-actions";
import { ApiError } from "@/api/errors";

/** The fields of a form by the beginning of the server's name for them. The first one that fits counts. */
export type FieldTable<V extends FieldValues> = readonly (readonly [string, Path<V>])[];

export function findField<V extends FieldValues>(error: unknown, table: FieldTable<V>): Path<V> | null {
  if (!(error instanceof ApiError) || error.field === null) {
    return null;
  }
  const { field } = error;
  return table.find(([name]) => field.startsWith(name))?.[1] ?? null;
}

/** Without the server's name of the field, which the form has another name for. */
function messageFor(error: unknown): string {
  return error instanceof Error ? error.message.replace(/^[\w.]+: /, "") : String(error);
}

interface FormSave {
  submit: () => void;
  /** Why the form was not saved, if no field is the reason. */
  failure: unknown;
}

export function useFormSave<V extends FieldValues>(
  form: UseFormReturn<V>,
  table: FieldTable<V>,
  save: (values: V) => Promise<void>,
): FormSave {
  const [failure, setFailure] = useState<unknown>(null);
  const { isSubmitting } = form.formState;
  async function trySaving(values: V): Promise<void> {
    try {
      await save(values);
    } catch (error) {
      const field = findField(error, table);
      if (field === null) {
        setFailure(error);
      } else {
        form.setError(field, { message: messageFor(error) }, { shouldFocus: true });
      }
    }
  }
  function submit(): void {
    if (!isSubmitting) {
      setFailure(null);
      void form.handleSubmit(trySaving)();
    }
  }
  useAction("settings.work-save", submit);
  return { submit, failure };
}
