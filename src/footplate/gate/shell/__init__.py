"""How a command line is read: into simple commands, redirects, and reasons why not all of it is understood."""
