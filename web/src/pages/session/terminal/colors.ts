// The colours of the terminal in both themes: the page's own, and sixteen that can be read on its background.
import type { ITheme } from "@xterm/xterm";

const LIGHT: ITheme = {
  background: "#ffffff",
  foreground: "#14171c",
  cursor: "#2f4fc6",
  cursorAccent: "#ffffff",
  selectionBackground: "#c9d5fb",
  black: "#14171c",
  red: "#b42318",
  green: "#1a7440",
  yellow: "#8f5300",
  blue: "#2f4fc6",
  magenta: "#8a2a8f",
  cyan: "#0b6b7a",
  white: "#5b6472",
  brightBlack: "#6d7683",
  brightRed: "#c9372c",
  brightGreen: "#22804a",
  brightYellow: "#9a6100",
  brightBlue: "#4a67d6",
  brightMagenta: "#9c3aa1",
  brightCyan: "#157a89",
  brightWhite: "#3b424e",
};

const DARK: ITheme = {
  background: "#101216",
  foreground: "#e7eaef",
  cursor: "#8ea6ff",
  cursorAccent: "#101216",
  selectionBackground: "#2f3f70",
  black: "#3b424e",
  red: "#ff8f85",
  green: "#6fcf94",
  yellow: "#f0b454",
  blue: "#8ea6ff",
  magenta: "#e2a1e6",
  cyan: "#75d0df",
  white: "#c6cbd4",
  brightBlack: "#8a93a2",
  brightRed: "#ffb0a8",
  brightGreen: "#95e0b1",
  brightYellow: "#f7cd8c",
  brightBlue: "#b3c3ff",
  brightMagenta: "#efc3f1",
  brightCyan: "#a5e3ed",
  brightWhite: "#ffffff",
};

export function terminalColors(isDark: boolean): ITheme {
  return isDark ? DARK : LIGHT;
}
