"""Parts of `box-4`: servers on this machine, attempts to reach them from inside, and the script that makes them."""
