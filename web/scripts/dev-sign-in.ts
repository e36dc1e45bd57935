// Signs the development server in with the API key of FOOTPLATE_API_KEY. It is no part of the application: `vite` alone
// loads it, and the browser never receives the key.
import type { IncomingMessage } from "node:http";

import type { Plugin } from "vite";

const ME = "/v1/me";

export function signInWithApiKey(api: string, key: string | undefined): Plugin {
  return {
    name: "footplate-dev-sign-in",
    apply: "serve",
    configureServer(server) {
      if (key === undefined || key === "") {
        return;
      }
      server.middlewares.use((request: IncomingMessage, response, next) => {
        request.headers["x-api-key"] = key;
        delete request.headers.origin;
        if (request.url !== ME) {
          next();
          return;
        }
        fetch(`${api}${ME}`, { headers: { "x-api-key": key } }).then(
          async (found) => {
            response.statusCode = found.status;
            response.setHeader("content-type", "application/json");
            response.end(await found.text());
          },
          (error: unknown) => {
            response.statusCode = 502;
            response.end(String(error));
          },
        );
      });
    },
  };
}
