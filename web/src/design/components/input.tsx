// Fields for text. Give each a label with `Field`.
import { Input as Base } from "@base-ui/react/input";
import type { ComponentProps } from "react";

import { cn } from "../classes";

export const FIELD =
  "w-full rounded-md border border-line-strong bg-canvas px-2 text-base text-text transition-colors hover:border-faint disabled:opacity-50 aria-invalid:border-failed max-md:text-lg";

export function Input({ className, ...props }: Omit<Base.Props, "className"> & { className?: string }) {
  return <Base className={cn(FIELD, "h-8 max-md:h-11", className)} {...props} />;
}

export function Textarea({ className, ...props }: ComponentProps<"textarea">) {
  return <textarea className={cn(FIELD, "min-h-20 resize-y py-1.5", className)} {...props} />;
}
