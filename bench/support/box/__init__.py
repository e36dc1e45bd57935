"""What the proofs of the environments have in common."""
