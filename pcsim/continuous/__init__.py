"""iPC as a flow: states, errors and weights all move at once, nothing is gated."""
