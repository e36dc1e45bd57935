"""What `door-5` looks at: the command line on terminals, in pipes, killed, and asked by a shell."""
