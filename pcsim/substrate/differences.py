"""Do two chips of one description differ? Only if a draw is left when zeros are multiplied out."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from pcsim.substrate.effect import Effect, Substrate


def chips_differ(substrate: Substrate) -> bool:
    """Whether some draw reaches a signal: spreads of zero and chances of 0 or 1 draw nothing."""
    return any(_differs(effect) for effect in substrate.effects)


def has_noise(substrate: Substrate) -> bool:
    """Whether two runs of one chip differ."""
    for effect in substrate.effects:
        texts = [effect.becomes, *(m.update for m in effect.memory.values())]
        starts = {"start_xi", "start_u"}
        if any(_left(text, effect.constants) & set(effect.noise) for text in texts):
            return True
        if any(_left(m.start, effect.constants) & starts for m in effect.memory.values()):
            return True
    return False


def _differs(effect: Effect) -> bool:
    drawn = {
        name
        for name, draw in effect.draws.items()
        if draw.law != "bernoulli" or 0 < draw.probability < 1
    }
    for name, text in effect.parameters.items():
        if _left(text, effect.constants) & drawn:
            drawn.add(name)
    texts = [effect.becomes, *(t for m in effect.memory.values() for t in (m.start, m.update))]
    return any(_left(text, effect.constants) & drawn for text in texts)


def _left(text: str, constants: Mapping[str, float]) -> set[str]:
    """Return the symbols of an expression that remain when products with zero are left out."""
    zeros = {name for name, value in constants.items() if value == 0}
    return _names(ast.parse(text, mode="eval").body, zeros)


def _names(node: ast.expr, zeros: Collection[str]) -> set[str]:
    if _zero(node, zeros):
        return set()
    if isinstance(node, ast.Name):
        return {node.id}
    children = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    return set().union(*(_names(each, zeros) for each in children if isinstance(each, ast.expr)))


def _zero(node: ast.expr, zeros: Collection[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in zeros
    if isinstance(node, ast.Constant):
        return node.value == 0
    if isinstance(node, ast.UnaryOp):
        return _zero(node.operand, zeros)
    if isinstance(node, ast.BinOp):
        left, right = _zero(node.left, zeros), _zero(node.right, zeros)
        if isinstance(node.op, ast.Mult):
            return left or right
        if isinstance(node.op, ast.Div):
            return left
        return left and right if isinstance(node.op, ast.Add | ast.Sub) else False
    return False
