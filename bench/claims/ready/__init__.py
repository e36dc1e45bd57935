"""Claims about long sessions, large installations and daily operation."""
