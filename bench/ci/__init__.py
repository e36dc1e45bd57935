"""Runs the lanes of CI within their CPU budgets, and reports the results."""
