// Finds characters that a reader cannot see or that change the order of text: what is shown must be what is there.
export interface TextPart {
  text: string;
  /** The name of an invisible character, such as `U+202E`. Null: plain text. */
  mark: string | null;
}

// Control characters except tab and line feed; soft hyphen; bidirectional controls; zero-width characters; fillers that
// look like spaces; variation selectors beyond emoji; tags; the byte order mark; lone surrogates.
const HIDDEN =
  // oxlint-disable-next-line no-control-regex, no-misleading-character-class -- these characters are what it finds
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\uffff\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/gu;
/** Between parts of one emoji, such as a family, a joiner is no trick. */
const EMOJI_BEFORE = /\p{Extended_Pictographic}(?:\ufe0f|[\u{1f3fb}-\u{1f3ff}])*$/u;
const EMOJI_AFTER = /^\p{Extended_Pictographic}/u;
const NAMES: Record<string, string> = { "\r": "CR", "\u001b": "ESC", "\u0000": "NUL", "\u0008": "BS" };

export function splitHidden(text: string): TextPart[] {
  const parts: TextPart[] = [];
  let end = 0;
  for (const match of text.matchAll(HIDDEN)) {
    const character = match[0];
    if (character === "\r" && text[match.index + 1] === "\n") {
      continue;
    }
    if (character === "\u200d" && isInsideEmoji(text, match.index)) {
      continue;
    }
    if (match.index > end) {
      parts.push({ text: text.slice(end, match.index), mark: null });
    }
    parts.push({ text: character, mark: nameOf(character) });
    end = match.index + character.length;
  }
  if (end < text.length || parts.length === 0) {
    parts.push({ text: text.slice(end), mark: null });
  }
  return parts;
}

function isInsideEmoji(text: string, index: number): boolean {
  return (
    EMOJI_BEFORE.test(text.slice(Math.max(0, index - 8), index)) && EMOJI_AFTER.test(text.slice(index + 1, index + 4))
  );
}

function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return NAMES[character] ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}
