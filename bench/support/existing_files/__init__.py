"""Settings files of Claude Code, asked of its CLI and of the gate: the same calls, judged by what they did."""
