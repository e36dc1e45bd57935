"""Permission rules: their syntax, the patterns in them, and the policy that combines the rules of all layers."""
