// The cache of everything that was read. The feed marks entries as outdated, so no page polls.
import { QueryClient } from "@tanstack/react-query";

import { ApiError } from "./errors";

const MAX_RETRIES = 3;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) => failures < MAX_RETRIES && !(error instanceof ApiError && !error.isTemporary),
      retryDelay: (failures) => Math.min(500 * 2 ** failures, 8_000),
    },
    mutations: { retry: false },
  },
});
