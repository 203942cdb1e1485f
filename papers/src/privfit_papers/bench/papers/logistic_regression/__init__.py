"""Privacy-preserving logistic regression (Chaudhuri and Monteleoni, NIPS 2008): Figures 1 and 2."""
