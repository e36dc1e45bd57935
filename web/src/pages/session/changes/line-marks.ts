// Makes lines of a patch fit to be shown: marks characters that nobody sees, and cuts very long lines.
import { splitHidden } from "@/design/text/safe-text";

/** A longer line is cut: nobody reads it, and a line of megabytes would freeze the page. */
export const LONGEST_LINE = 2_000;
const ANY_HIDDEN =
  // oxlint-disable-next-line no-control-regex, no-misleading-character-class -- a quick test before `splitHidden`
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\uffff\ud800-\udfff]/;

/** Of one file. It counts what it changed. */
export class LineMarks {
  hidden = 0;
  cut = 0;
  readonly #hasHidden: boolean;
  /** Whether some lines end with a carriage return and others do not: then the difference is shown. */
  readonly #isMixed: boolean;

  constructor(source: string) {
    this.#hasHidden = ANY_HIDDEN.test(source);
    const hunks = this.#hasHidden ? source.slice(Math.max(0, source.indexOf("\n@@ "))) : "";
    this.#isMixed = /\n[-+ ][^\r\n]*\r\n/.test(hunks) && /\n[-+ ][^\r\n]*\n/.test(hunks);
  }

  apply(line: string): string {
    let shown = line;
    let rest = "";
    if (shown.length > LONGEST_LINE) {
      this.cut += 1;
      rest = ` … ${(shown.length - LONGEST_LINE).toLocaleString("en-US")} more characters`;
      shown = shown.slice(0, LONGEST_LINE);
    }
    if (this.#hasHidden && ANY_HIDDEN.test(shown)) {
      if (!this.#isMixed && shown.endsWith("\r")) {
        shown = shown.slice(0, -1);
      }
      shown = splitHidden(shown)
        .map((part) => {
          if (part.mark === null) {
            return part.text;
          }
          this.hidden += 1;
          return `⟦${part.mark}⟧`;
        })
        .join("");
    }
    return shown + rest;
  }
}
