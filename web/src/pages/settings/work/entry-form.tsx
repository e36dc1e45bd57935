// The frame of a form of an entry: it saves, shows what the server refuses at its field, and asks before it is closed.
import { useBlocker } from "@tanstack/react-router";
import { type ReactNode, useRef, useState } from "react";
import { type FieldValues, FormProvider, type Path, type UseFormReturn } from "react-hook-form";

import { displayShortcut } from "@/actions/shortcuts";
import { useAction } from "@/actions/use-actions";
import { ApiError } from "@/api/errors";
import { Button } from "@/design/components/button";
import { DiscardDialog } from "@/design/components/discard-dialog";
import { ErrorPanel } from "@/design/components/error-panel";

interface EntryFormProps<V extends FieldValues, T> {
  form: UseFormReturn<V>;
  /** What it is, such as "agent". */
  noun: string;
  isNew: boolean;
  send: (values: V) => Promise<T>;
  onSaved: (saved: T) => void;
  /** The field of the form for the server's name of a field, such as `permissions.deny.0`. */
  findField: (field: string) => Path<V> | null;
  onCancel: () => void;
  note?: ReactNode;
  children: ReactNode;
}

export function EntryForm<V extends FieldValues, T>(props: EntryFormProps<V, T>) {
  const { form, noun, isNew, send, onSaved, findField, onCancel, note, children } = props;
  const { errors, isDirty, isSubmitting } = form.formState;
  const isSaved = useRef(false);
  const [failure, setFailure] = useState<unknown>(null);
  const blocker = useBlocker({
    shouldBlockFn: () => isDirty && !isSaved.current,
    enableBeforeUnload: () => isDirty && !isSaved.current,
    withResolver: true,
  });
  async function save(values: V): Promise<void> {
    try {
      const saved = await send(values);
      isSaved.current = true;
      onSaved(saved);
    } catch (error) {
      const field = error instanceof ApiError && error.field !== null ? findField(error.field) : null;
      if (field === null) {
        setFailure(error);
      } else {
        const message = error instanceof Error ? error.message : String(error);
        form.setError(field, { message, type: "server" }, { shouldFocus: true });
      }
    }
  }
  function submit(): void {
    setFailure(null);
    void form.handleSubmit(save)();
  }
  useAction("settings.work-save", submit);
  return (
    <FormProvider {...form}>
      <form
        className="mx-auto flex w-full max-w-3xl flex-col gap-8 p-6 max-md:p-4"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <h2 className="-mb-2 text-lg font-semibold">{isNew ? `New ${noun}` : `Edit the ${noun}`}</h2>
        {children}
        {failure !== null && <ErrorPanel title={`The ${noun} was not saved`} error={failure} />}
        {failure === null && Object.keys(errors).length > 0 && (
          <p role="status" className="text-sm text-failed">
            The {noun} was not saved. Correct the marked fields.
          </p>
        )}
        <div className="flex flex-wrap items-center justify-end gap-2">
          {note !== undefined && <span className="flex-1 text-sm text-muted max-md:basis-full">{note}</span>}
          <Button className="max-md:h-11 max-md:flex-1" onClick={onCancel}>
            Cancel
          </Button>
          <Button
            type="submit"
            variant="primary"
            className="max-md:h-11 max-md:flex-1"
            disabled={isSubmitting || (!isNew && !isDirty)}
            shortcut={displayShortcut("mod+enter").join(" ")}
          >
            {isNew ? `Create ${noun}` : "Save"}
          </Button>
        </div>
      </form>
      {blocker.status === "blocked" && <DiscardDialog noun={noun} onKeep={blocker.reset} onDiscard={blocker.proceed} />}
    </FormProvider>
  );
}
