"""Parts of `door-4`: the stories, the page they read, and how two tellings of one story are compared."""
