"""Parts of tool calls that all harnesses use: the tools for child sessions, and the details of commands."""
