"""What runs in a peer's own environment: one script a peer, which knows numpy and that peer only.

They are run by their place and not as parts of privfit_papers, which those environments do not have.
"""
