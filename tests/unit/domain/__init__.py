"""Tests of the domain. They use no services, and no files except the corpus."""
