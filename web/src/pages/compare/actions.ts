// The actions of this page. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const compareActions = defineActions([]);
