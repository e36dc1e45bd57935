"""What door-3 works with: a balancer, callers, kills, and the judgement of what became of each POST."""
