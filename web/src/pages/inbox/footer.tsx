// The decisions of an item, which stay on the screen: at the bottom of the detail, within reach of a thumb on a phone.
import type { ReactNode } from "react";

export function Footer({ hint = null, children }: { hint?: string | null; children: ReactNode }) {
  return (
    <footer className="sticky bottom-0 -mx-4 border-t bg-canvas px-4 py-3 max-md:mt-auto md:-mx-6 md:border-0 md:px-6">
      {hint !== null && <p className="pb-2 text-sm text-muted">{hint}</p>}
      <div className="flex flex-wrap gap-2 max-md:[&>button]:h-11 max-md:[&>button]:flex-1">{children}</div>
    </footer>
  );
}
