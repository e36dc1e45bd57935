"""Answers in JSON by what the call speaks of."""

import json
import sys

call = json.load(sys.stdin)
text = json.dumps(call["tool_input"])
for word in ("deny", "ask", "allow"):
    if f"word-{word}" in text:
        said = {"hookEventName": "PreToolUse", "permissionDecision": word, "permissionDecisionReason": "as it says"}
        sys.stdout.write(json.dumps({"hookSpecificOutput": said}))
        break
