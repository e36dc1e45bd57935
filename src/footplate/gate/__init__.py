"""The gate: what a tool call may do, by rules. Pure: it reads a call and says allow, ask or deny, and why."""
