"""Claims about names, English and evidence."""
