"""Claims about the product: one module for each, with the test that decides whether it holds."""
