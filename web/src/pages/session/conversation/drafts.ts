// Texts that are not sent yet, by session: they survive navigation and a reload of the page.
const PREFIX = "footplate.draft.";
const KEPT_DAYS = 7;

interface Stored {
  text: string;
  at: number;
}

export function loadDraft(sessionId: string): string {
  try {
    const stored = JSON.parse(localStorage.getItem(PREFIX + sessionId) ?? "null") as Stored | null;
    return stored !== null && Date.now() - stored.at < KEPT_DAYS * 86_400_000 ? stored.text : "";
  } catch {
    return ""; // storage is disabled
  }
}

export function saveDraft(sessionId: string, text: string): void {
  try {
    if (text === "") {
      localStorage.removeItem(PREFIX + sessionId);
    } else {
      localStorage.setItem(PREFIX + sessionId, JSON.stringify({ text, at: Date.now() } satisfies Stored));
    }
  } catch {
    // The draft then lasts as long as the page.
  }
}
