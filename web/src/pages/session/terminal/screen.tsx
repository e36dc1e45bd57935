// The screen of the terminal: xterm.js, with its size and search. Loaded when a terminal is shown.
import "@xterm/xterm/css/xterm.css";

import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { Terminal } from "@xterm/xterm";
import { useEffect, useEffectEvent, useImperativeHandle, useRef, type Ref } from "react";

import { useIsDark } from "@/frame/theme";
import { terminalColors } from "./colors";
import type { LinkStatus } from "./link";

const SCROLLBACK = 10_000;

export interface ScreenHandle {
  write: (bytes: Uint8Array) => void;
  clear: () => void;
  focus: () => void;
  /** Selects the next match. Returns whether there is one. */
  find: (text: string, direction: "next" | "previous") => boolean;
  /** Makes the terminal as large as its box, and returns the size. */
  fit: () => { columns: number; rows: number };
}

interface Props {
  ref: Ref<ScreenHandle>;
  /** The handle can be used. */
  onReady: () => void;
  canType: boolean;
  size: LinkStatus["size"];
  onType: (text: string) => void;
  onResize: (columns: number, rows: number) => void;
  /** Ctrl+] leaves the terminal, as in `footplate attach --terminal`. */
  onLeave: () => void;
}

export default function Screen({ ref, onReady, canType, size, onType, onResize, onLeave }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const parts = useRef<{ terminal: Terminal; fit: FitAddon; search: SearchAddon } | null>(null);
  const isDark = useIsDark();
  const type = useEffectEvent(onType);
  const leave = useEffectEvent(onLeave);
  const announce = useEffectEvent(onReady);
  const initialColors = useEffectEvent(() => terminalColors(isDark));
  const fitToBox = useEffectEvent(() => {
    const current = parts.current;
    if (current === null || !canType) {
      return;
    }
    current.fit.fit();
    onResize(current.terminal.cols, current.terminal.rows);
  });

  useEffect(() => {
    const element = box.current;
    if (element === null) {
      return undefined;
    }
    const terminal = new Terminal({
      scrollback: SCROLLBACK,
      fontFamily: getComputedStyle(element).fontFamily,
      fontSize: 13,
      theme: initialColors(),
      minimumContrastRatio: 4.5,
      cursorBlink: false,
      // Links that a program prints are text: they could lead anywhere.
      linkHandler: { activate: () => undefined },
    });
    const fit = new FitAddon();
    const search = new SearchAddon();
    terminal.loadAddon(fit);
    terminal.loadAddon(search);
    terminal.open(element);
    terminal.onData((text) => {
      type(text);
    });
    terminal.attachCustomKeyEventHandler((event) => {
      if (event.type === "keydown" && event.ctrlKey && event.key === "]") {
        event.preventDefault();
        leave();
        return false;
      }
      // The page's own shortcut for the search; all others are keys of the program.
      return !((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "f");
    });
    parts.current = { terminal, fit, search };
    announce();
    const observer = new ResizeObserver(() => {
      fitToBox();
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      parts.current = null;
      terminal.dispose();
    };
  }, []);

  useEffect(() => {
    const current = parts.current;
    if (current !== null) {
      current.terminal.options.theme = terminalColors(isDark);
    }
  }, [isDark]);

  useEffect(() => {
    const current = parts.current;
    if (current !== null) {
      current.terminal.options.disableStdin = !canType;
    }
    fitToBox();
  }, [canType]);

  // Whoever types decides on the size; everybody else draws what is sent for it.
  useEffect(() => {
    if (size !== null) {
      parts.current?.terminal.resize(size.columns, size.rows);
    }
  }, [size]);

  useImperativeHandle(
    ref,
    () => ({
      write: (bytes) => parts.current?.terminal.write(bytes),
      clear: () => parts.current?.terminal.reset(),
      focus: () => parts.current?.terminal.focus(),
      find: (text, direction) =>
        (direction === "next" ? parts.current?.search.findNext(text) : parts.current?.search.findPrevious(text)) ??
        false,
      fit: () => {
        parts.current?.fit.fit();
        return { columns: parts.current?.terminal.cols ?? 80, rows: parts.current?.terminal.rows ?? 24 };
      },
    }),
    [],
  );

  return (
    <div className="min-h-48 flex-1 overflow-auto bg-canvas px-4 py-2 font-mono max-md:px-2">
      <div ref={box} className="h-full min-h-44" data-testid="terminal-screen" />
    </div>
  );
}
