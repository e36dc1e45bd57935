// Copies text to the clipboard and says so.
import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";

import { cn } from "../classes";
import { showToast } from "./toast";

const SHOWN_MS = 1500;

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No permission, or the page was not opened over HTTPS.
    showToast({ title: "Copying failed", description: "Select the text and copy it yourself.", tone: "failed" });
    return false;
  }
}

interface CopyButtonProps {
  text: string;
  /** What is copied, such as "the request ID". */
  label: string;
  className?: string;
  /** Shows the text beside the icon. */
  showText?: boolean;
}

export function CopyButton({ text, label, className, showText = false }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) {
      return undefined;
    }
    const timer = setTimeout(() => {
      setCopied(false);
    }, SHOWN_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [isCopied]);
  // The name contains the text that is shown, so that a person can call it by voice.
  const named = showText && !label.includes(text) ? `${label} ${text}` : label;
  return (
    <button
      type="button"
      aria-label={isCopied && !showText ? "Copied" : `${isCopied ? "Copied" : "Copy"} ${named}`}
      title={`Copy ${label}`}
      className={cn(
        "inline-flex min-h-6 max-w-full min-w-6 items-center justify-center gap-1.5 rounded-sm px-1 text-muted hover:bg-hover hover:text-text",
        className,
      )}
      onClick={() => {
        void copyText(text).then(setCopied);
      }}
    >
      {showText && <code className="truncate font-mono text-sm">{text}</code>}
      {isCopied ? <Check className="size-3.5 shrink-0 text-success" /> : <Copy className="size-3.5 shrink-0" />}
    </button>
  );
}
