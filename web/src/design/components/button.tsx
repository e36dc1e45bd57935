// A button. At most one `primary` per view.
import { Button as Base } from "@base-ui/react/button";
import { cva, type VariantProps } from "class-variance-authority";

import { cn } from "../classes";

export const buttonStyle = cva(
  "inline-flex shrink-0 items-center justify-center gap-2 rounded-md font-medium whitespace-nowrap transition-colors select-none disabled:opacity-50 data-disabled:opacity-50 [&_svg]:size-4 [&_svg]:shrink-0",
  {
    variants: {
      variant: {
        primary: "bg-accent text-on-accent hover:bg-accent-hover",
        secondary: "border border-line-strong bg-canvas text-text hover:bg-hover",
        quiet: "text-muted hover:bg-hover hover:text-text",
        danger: "border border-line-strong bg-canvas text-failed hover:bg-failed-soft",
      },
      size: { sm: "h-7 px-2 text-sm", md: "h-8 px-3", lg: "h-11 px-4 text-lg", icon: "size-8" },
    },
    defaultVariants: { variant: "secondary", size: "md" },
  },
);

export interface ButtonProps extends Omit<Base.Props, "className">, VariantProps<typeof buttonStyle> {
  className?: string;
  /** The key that does the same, shown inside. */
  shortcut?: string;
}

export function Button({ variant, size, className, shortcut, children, ...props }: ButtonProps) {
  return (
    <Base
      type="button"
      className={cn(buttonStyle({ variant, size }), className)}
      {...(shortcut === undefined ? {} : { "aria-keyshortcuts": shortcut })}
      {...props}
    >
      {children}
      {shortcut !== undefined && <kbd className="hidden text-xs opacity-80 md:inline">{shortcut}</kbd>}
    </Base>
  );
}
