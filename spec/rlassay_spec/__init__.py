"""What is right: the claims, the operations, the conventions and the exact oracles.

Standard library, numpy and scipy only; an implementation is never imported from here.
"""
