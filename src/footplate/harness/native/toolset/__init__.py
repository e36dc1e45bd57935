"""The built-in tools of the `native` harness."""
