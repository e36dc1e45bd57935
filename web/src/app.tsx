// Connects the router, the query cache, the toasts and the content security policy's nonce.
import { CSPProvider } from "@base-ui/react/csp-provider";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";

import { queryClient } from "./api/query-client";
import { TooltipProvider } from "./design/components/tooltip";
import { Toaster } from "./design/components/toast";
import { readNonce } from "./frame/nonce";
import { router } from "./router";

export function App() {
  const nonce = readNonce();
  return (
    <CSPProvider {...(nonce === undefined ? {} : { nonce })}>
      <QueryClientProvider client={queryClient}>
        <TooltipProvider>
          <Toaster>
            <RouterProvider router={router} />
          </Toaster>
        </TooltipProvider>
      </QueryClientProvider>
    </CSPProvider>
  );
}
