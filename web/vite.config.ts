import { fileURLToPath } from "node:url";

import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

import { compressFiles } from "./scripts/compress.ts";
import { signInWithApiKey } from "./scripts/dev-sign-in.ts";

const api = process.env["FOOTPLATE_BASE_URL"] ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react(), tailwindcss(), compressFiles(), signInWithApiKey(api, process.env["FOOTPLATE_API_KEY"])],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    outDir: "../src/footplate/dashboard",
    emptyOutDir: true,
    target: "es2023",
    // The content security policy allows no script or font in a data URL.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
  },
  server: {
    host: "127.0.0.1",
    proxy: { "^/(v1|livez|readyz|openapi\\.json)": { target: api, ws: true, changeOrigin: true } },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
  },
});
