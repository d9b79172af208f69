"""Code that is compiled on the user's machine, once, and kept in the user's cache folder."""

from pcsim.native.compiler import Library, library

__all__ = ["Library", "library"]
