"""A hook that decides by the text of the tool's input."""

import json
import sys

call = json.load(sys.stdin)
text = json.dumps(call["tool_input"])
for decision in ("deny", "ask", "allow"):
    if f"word-{decision}" in text:
        output = {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": "as it says",
        }
        sys.stdout.write(json.dumps({"hookSpecificOutput": output}))
        break
