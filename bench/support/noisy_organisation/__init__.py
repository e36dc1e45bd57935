"""One organisation sends many times its share, and the response times of the others are measured meanwhile."""
