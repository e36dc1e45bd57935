// Gives the page's nonce to style elements that libraries create at run time (terminal, diffs), because the content
// security policy refuses style elements without it.
export function readNonce(): string | undefined {
  const nonce = document.querySelector<HTMLMetaElement>("meta[name=csp-nonce]")?.content;
  return nonce === undefined || nonce === "" || nonce.startsWith("__") ? undefined : nonce;
}

export function adoptNonce(): void {
  const nonce = readNonce();
  if (nonce === undefined) {
    return;
  }
  const page: { createElement: (tag: string, options?: ElementCreationOptions) => HTMLElement } = document;
  const createElement = page.createElement.bind(document);
  page.createElement = (tag, options) => {
    const element = createElement(tag, options);
    if (element instanceof HTMLStyleElement) {
      element.nonce = nonce;
    }
    return element;
  };
}
