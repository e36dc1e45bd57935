// The look of everything that opens above the page.
export const POPUP =
  "z-50 rounded-lg border border-line bg-raised text-text shadow-popup outline-none transition-[opacity,transform] data-ending-style:opacity-0 data-starting-style:opacity-0";

export const POPUP_ITEM =
  "flex h-8 cursor-default items-center gap-2 rounded-md px-2 outline-none select-none data-disabled:opacity-50 data-highlighted:bg-hover max-md:h-11 [&_svg]:size-4 [&_svg]:shrink-0 [&_svg]:text-muted";

export const BACKDROP =
  "fixed inset-0 z-40 bg-overlay transition-opacity data-ending-style:opacity-0 data-starting-style:opacity-0";
