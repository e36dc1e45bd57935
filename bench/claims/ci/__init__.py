"""Claims about CI itself. CI does not run them."""
