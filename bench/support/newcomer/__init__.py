"""What `door-8` does: the README's first screen, followed to the letter by somebody who has nothing yet."""
