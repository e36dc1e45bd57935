// A checkbox with its label.
import { Checkbox as Base } from "@base-ui/react/checkbox";
import { Check, Minus } from "lucide-react";
import type { ReactNode } from "react";

import { cn } from "../classes";

interface CheckboxProps extends Omit<Base.Root.Props, "className" | "children"> {
  className?: string;
  /** Visible text; without it, give `aria-label`. */
  children?: ReactNode;
}

export function Checkbox({ className, children, indeterminate = false, ...props }: CheckboxProps) {
  const box = (
    <Base.Root
      indeterminate={indeterminate}
      className={cn(
        "flex size-4 shrink-0 items-center justify-center rounded-sm border border-line-strong bg-canvas transition-colors hover:border-faint data-checked:border-accent data-checked:bg-accent data-indeterminate:border-accent data-indeterminate:bg-accent data-disabled:opacity-50",
        className,
      )}
      {...props}
    >
      <Base.Indicator className="text-on-accent [&_svg]:size-3">
        {indeterminate ? <Minus strokeWidth={3} /> : <Check strokeWidth={3} />}
      </Base.Indicator>
    </Base.Root>
  );
  return children === undefined ? (
    box
  ) : (
    <label className="flex items-center gap-2">
      {box}
      {children}
    </label>
  );
}
