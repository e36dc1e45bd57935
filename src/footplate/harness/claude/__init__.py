"""The `claude` harness: runs Claude Code through the Claude Agent SDK and its bundled CLI."""

from footplate.domain.ports.harness import Harness, HarnessServices


def create(services: HarnessServices) -> Harness:
    """The factory of the entry point `claude`. It imports the SDK here, so that a worker that only locates the CLI does
    not load the SDK.
    """
    from footplate.harness.claude.harness import ClaudeHarness

    return ClaudeHarness(
        services.mcp, services.web, starts=services.max_concurrent_starts, hold_seconds=services.approval_hold_seconds
    )
