// The look of diffs: the fonts and colours of the page instead of those of the viewer.
export const DIFF_STYLE = {
  "--diffs-font-family": "var(--font-mono)",
  "--diffs-font-size": "13px",
  "--diffs-line-height": "20px",
  "--diffs-addition-color-override": "light-dark(#16934a, #5ecc71)",
  "--diffs-deletion-color-override": "light-dark(#d1242f, #ff7b72)",
} as Record<string, string>;
/** The background of the page instead of that of the theme. */
export const DIFF_CSS = ":host { --diffs-light-bg: var(--canvas); --diffs-dark-bg: var(--canvas); }";
