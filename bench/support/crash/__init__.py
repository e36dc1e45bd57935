"""How core-2 and core-3 break a cell, and how they find out what became of it."""
