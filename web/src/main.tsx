// Starts the application in the page.
import "./design/styles.css";

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./app";
import { adoptNonce } from "./frame/nonce";

adoptNonce();
const root = document.getElementById("root");
if (root === null) {
  throw new Error("index.html has no element with the id root");
}
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
