// Images and files of a message. Only content of the session itself is loaded, never an address of another site.
import { FileText, Image as ImageIcon } from "lucide-react";
import { useState } from "react";

import { SafeText } from "@/design/text/text";

import { type Attachment, textField } from "../log/events";

const IMAGE_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export function Attachments({ attachments }: { attachments: readonly Attachment[] }) {
  if (attachments.length === 0) {
    return null;
  }
  return (
    <ul aria-label="Attachments" className="mt-2 flex flex-wrap gap-2">
      {attachments.map((attachment, index) => (
        <li key={index} className="min-w-0">
          <One attachment={attachment} />
        </li>
      ))}
    </ul>
  );
}

/** The address of the content of an attachment, if it is the session's own. */
export function contentUrl({ type, source }: Attachment): string | null {
  const fileId = textField(source, "file_id");
  if (fileId !== null) {
    return `/v1/files/${encodeURIComponent(fileId)}/content`;
  }
  const data = textField(source, "data");
  const mediaType = textField(source, "media_type") ?? "";
  const isImage = type === "image" && IMAGE_TYPES.has(mediaType);
  return source["type"] === "base64" && data !== null && isImage ? `data:${mediaType};base64,${data}` : null;
}

function One({ attachment }: { attachment: Attachment }) {
  const [hasFailed, setFailed] = useState(false);
  const url = contentUrl(attachment);
  const name = describe(attachment);
  if (attachment.type === "image" && url !== null && !hasFailed) {
    return (
      <a href={url} target="_blank" rel="noopener noreferrer" download={name} title={name}>
        <img
          src={url}
          alt={name}
          loading="lazy"
          className="max-h-80 max-w-full rounded-md border"
          onError={() => {
            setFailed(true);
          }}
        />
      </a>
    );
  }
  const Icon = attachment.type === "image" ? ImageIcon : FileText;
  const chip = (
    <span className="flex h-7 max-w-80 items-center gap-1.5 rounded-sm border px-2 text-sm text-muted">
      <Icon aria-hidden className="size-3.5 shrink-0" />
      <SafeText className="truncate">{hasFailed ? `${name}, which is no longer available` : name}</SafeText>
    </span>
  );
  return url === null || hasFailed ? (
    chip
  ) : (
    <a href={url} download={name} className="block rounded-sm hover:bg-hover">
      {chip}
    </a>
  );
}

function describe({ type, title, source }: Attachment): string {
  return title ?? textField(source, "path") ?? textField(source, "url") ?? (type === "image" ? "Image" : "File");
}
