"""Steps, questions and children of a session."""
