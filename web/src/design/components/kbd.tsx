// A key, as it is printed on the keyboard.
import { cn } from "../classes";

export function Kbd({ children, className }: { children: string; className?: string }) {
  return (
    <kbd
      className={cn(
        "inline-flex h-5 min-w-5 items-center justify-center rounded-sm border border-line-strong bg-surface px-1 text-xs text-muted",
        className,
      )}
    >
      {children}
    </kbd>
  );
}
