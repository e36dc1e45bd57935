// The look of tables of numbers. A phone hides columns with `WIDE_ONLY`, and shows them below the name.
export const TABLE = "w-full border-separate border-spacing-0";

export const CELL = "h-9 border-b px-3 first:pl-4 last:pr-4";

export const WIDE_ONLY = "max-md:hidden";
