"""Models of real hardware: what a chip does to the equations."""
