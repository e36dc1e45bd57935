"""The domain's own tests: no services, no files but the corpus."""
