// A labelled field with a hint and an error.
import { type ReactNode, useId } from "react";

interface FieldProps {
  label: string;
  hint?: ReactNode;
  error?: string | undefined;
  children: (control: { id: string; "aria-describedby"?: string; "aria-invalid"?: true }) => ReactNode;
}

export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const description = error !== undefined || hint !== undefined ? `${id}-description` : undefined;
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children({
        id,
        ...(description === undefined ? {} : { "aria-describedby": description }),
        ...(error === undefined ? {} : { "aria-invalid": true }),
      })}
      {error === undefined ? (
        hint !== undefined && (
          <p id={description} className="text-sm text-muted">
            {hint}
          </p>
        )
      ) : (
        <p id={description} role="alert" className="text-sm text-failed">
          {error}
        </p>
      )}
    </div>
  );
}
