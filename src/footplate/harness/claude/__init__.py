"""The `claude` harness: Claude Code, by way of the Claude Agent SDK and the CLI that comes with it."""

from footplate.domain.ports import Harness, HarnessServices


def create(services: HarnessServices) -> Harness:
    """The factory behind the entry point `claude`. The SDK is loaded here: a worker that only looks for the CLI's
    program pays nothing for it.
    """
    from footplate.harness.claude.harness import ClaudeHarness

    return ClaudeHarness(services.mcp, services.web, starts=services.starts, hold=services.hold)
