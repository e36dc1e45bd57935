"""Generated change sets: what a work tree had and has, as plain values, and what a snapshot and a diff make of them."""
