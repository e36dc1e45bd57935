// A row of a list: 36 px, taller on a phone.
import type { ComponentProps } from "react";

import { cn } from "../classes";

export const ROW_HEIGHT = 36;

interface RowProps extends ComponentProps<"div"> {
  isSelected?: boolean;
}

export function Row({ isSelected = false, className, ...props }: RowProps) {
  return (
    <div
      data-selected={isSelected || undefined}
      className={cn(
        "flex h-9 items-center gap-3 border-b px-4 hover:bg-hover data-selected:bg-selected max-md:h-auto max-md:min-h-14 max-md:py-2",
        className,
      )}
      {...props}
    />
  );
}
