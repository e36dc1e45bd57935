"""What the policy commands do."""
