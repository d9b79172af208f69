"""Cells of transistors: processes, a library, networks made of it, and chips from it."""
