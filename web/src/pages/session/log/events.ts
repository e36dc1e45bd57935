// An event of a session's log, and how to read its fields.
export interface LogEvent {
  id: string;
  type: string;
  /** Where it is in the log. A message that waits has the position at which it was accepted. */
  position: number;
  /** Null: a message in the queue. */
  processed_at: string | null;
  [field: string]: unknown;
}

/** Image, document or file of a message or a result. */
export interface Attachment {
  type: string;
  title: string | null;
  source: Readonly<Record<string, unknown>>;
}

type Fields = Readonly<Record<string, unknown>>;

/** An event as a list (position as text) or a stream (position from the frame) delivers it. */
export function readEvent(data: Fields, position?: number): LogEvent {
  return { ...data, position: position ?? Number(data["position"]) } as LogEvent;
}

export function textField(event: Fields | null | undefined, name: string): string | null {
  const value = event?.[name];
  return typeof value === "string" ? value : null;
}

export function objectField(event: Fields | null | undefined, name: string): Fields | null {
  const value = event?.[name];
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}

function blocksOf(event: Fields): readonly Fields[] {
  const content = event["content"];
  return Array.isArray(content)
    ? content.filter((block): block is Fields => typeof block === "object" && block !== null)
    : [];
}

/** The text blocks of a message or a result, joined. */
export function textOf(event: Fields): string {
  return blocksOf(event)
    .map((block) => (block["type"] === "text" ? (textField(block, "text") ?? "") : ""))
    .join("");
}

export function attachmentsOf(event: Fields): Attachment[] {
  return blocksOf(event)
    .filter((block) => block["type"] !== "text")
    .map((block) => ({
      type: textField(block, "type") ?? "file",
      title: textField(block, "title"),
      source: objectField(block, "source") ?? {},
    }));
}

export function timeOf(event: LogEvent | null | undefined): number | null {
  return event?.processed_at == null ? null : Date.parse(event.processed_at);
}
