// A list of the API that is read page by page.
import { infiniteQueryOptions, type QueryKey } from "@tanstack/react-query";

import { request, type RequestOptions } from "../client";
import type { Listing } from "../contract";

const PAGE_SIZE = 50;

/** `key`: what makes the list outdated. */
export function listingQuery<T>(key: QueryKey, path: string, query: NonNullable<RequestOptions["query"]> = {}) {
  return infiniteQueryOptions({
    queryKey: [...key, "list", path, query],
    queryFn: ({ pageParam, signal }) =>
      request<Listing<T>>("GET", path, { query: { limit: PAGE_SIZE, ...query, page: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_page,
  });
}
