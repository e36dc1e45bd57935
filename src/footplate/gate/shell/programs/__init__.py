"""What is known of programs: which of their options write or run, which arguments are files."""
