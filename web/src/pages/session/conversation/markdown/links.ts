// Which links of Markdown can be opened: web pages and mail addresses, never scripts or files.
export interface SafeLink {
  href: string;
  /** Where it leads, shown beside the text: `example.com`. */
  host: string;
}

const PROTOCOLS = new Set(["http:", "https:", "mailto:"]);

/** Returns null for a link that must not be opened, such as `javascript:…`, a path, or one with a password. */
export function readLink(href: unknown): SafeLink | null {
  if (typeof href !== "string" || !/^(https?:|mailto:)/i.test(href.trim())) {
    return null;
  }
  try {
    const url = new URL(href.trim());
    if (!PROTOCOLS.has(url.protocol) || url.username !== "" || url.password !== "") {
      return null;
    }
    // Punycode: a host that looks like another one is shown as what it is.
    return { href: url.href, host: url.protocol === "mailto:" ? url.pathname : url.host };
  } catch {
    return null;
  }
}
