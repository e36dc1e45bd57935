import { fileURLToPath } from "node:url";

import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { VitePWA } from "vite-plugin-pwa";
import { defineConfig } from "vitest/config";

import { compressFiles } from "./scripts/compress.ts";
import { signInWithApiKey } from "./scripts/dev-sign-in.ts";

const api = process.env["FOOTPLATE_BASE_URL"] ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [
    react(),
    tailwindcss(),
    VitePWA({
      strategies: "injectManifest",
      srcDir: "src/service-worker",
      filename: "service-worker.ts",
      // Settings register it when a person turns notifications on: the content security policy allows no inline script.
      injectRegister: false,
      // It caches nothing, so no list of files is injected.
      injectManifest: { injectionPoint: undefined as unknown as string },
      manifest: {
        name: "Footplate",
        short_name: "Footplate",
        start_url: "/",
        display: "standalone",
        icons: [{ src: "/icon.svg", sizes: "any", type: "image/svg+xml" }],
      },
    }),
    compressFiles(),
    signInWithApiKey(api, process.env["FOOTPLATE_API_KEY"]),
  ],
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
    // A fresh DOM for each file takes ten times as long as the tests.
    isolate: false,
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
  },
});
