"""Counting the memory of the tensors that a piece of code makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class TensorMemory(TorchDispatchMode):
    """While it is entered, bytes of tensors in use, now and at the most."""

    def __init__(self, ignored: Sequence[Tensor] = (), smallest: int = 1) -> None:
        """`smallest`: tensors of fewer numbers do not count."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = 0
        self._smallest = smallest
        self._ignored = {_address(tensor) for tensor in ignored}
        self._known: dict[int, tuple[Any, int]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is traced here: torch need not load its compiler, which takes seconds."""
        return False

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Take note of what goes into an operation and of what comes out."""
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves((args, kwargs or {}, result)):  # some come from outside of torch
            if isinstance(leaf, Tensor) and leaf.numel() >= self._smallest:
                self._note(leaf)
        self.peak = max(self.peak, self.live())
        return result

    def _note(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        if _address(tensor) not in self._ignored:
            self._known[_address(tensor)] = (StorageWeakRef(storage), storage.nbytes())  # type: ignore[no-untyped-call]

    def live(self) -> int:
        """Return the bytes of all tensors that are still in use."""
        gone = [key for key, (reference, _) in self._known.items() if reference.expired()]
        for key in gone:
            del self._known[key]
        return sum(size for _, size in self._known.values())


def _address(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
