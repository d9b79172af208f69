"""Ready-made networks, each a frozen description with `build()`: the section `network` of a file.

`Network.cnn(...)`, `Network.alexnet(...)` and `Network.transformer(...)` take the same fields.
"""
