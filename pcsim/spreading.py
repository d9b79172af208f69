"""When errors and moved values first arrive at each node, after a feed-forward start.

At step 0 only node 0 has an error. A value node moves in the step in which it, or a child, has an
error; from the next step on its value differs, which its children notice as errors of their own.
Errors pass transparent nodes within a step, and so do values.
"""

from __future__ import annotations

from collections.abc import Sequence


def first_steps(
    transparent: Sequence[bool],
    parents: Sequence[Sequence[int]],
    children: Sequence[Sequence[int]],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return for each node the first step with an error, and the first with another value."""
    count = len(transparent)
    never = count + 1
    reach, stirred = [0] + [never] * (count - 1), [1] + [never] * (count - 1)
    before: list[int] = []
    while before != reach + stirred:
        before = reach + stirred
        for index in range(count):
            pulled = min((reach[c] for c in children[index]), default=never)
            above = min((stirred[p] for p in parents[index]), default=never)
            if transparent[index]:
                reach[index] = pulled
                stirred[index] = min(above, pulled + 1)  # its weights may have learnt
            elif index:
                stirred[index] = 1 + min(pulled, reach[index])  # drawn by others, or by itself
                reach[index] = min(stirred[index], above)
    return tuple(reach), tuple(stirred)
