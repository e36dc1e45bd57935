"""Child sessions for a claim: a large group under a kill, the best of several, and agents that start sessions without
end.
"""
