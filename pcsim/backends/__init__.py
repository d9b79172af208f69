"""Ways to execute the same equations."""
