"""Code that is compiled on the user's machine, once, and kept in the user's cache folder."""

from pcsim.native.compiler import SHORT, Library, library

__all__ = ["SHORT", "Library", "library"]
