"""CI: the lanes it runs, what each may cost, and the programs that run and report them."""
