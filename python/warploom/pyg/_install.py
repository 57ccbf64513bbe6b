"""What of PyG is wrapped: methods of layers, and functions that make lists of edges."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch_geometric.nn import MessagePassing

from warploom.pyg import (
    _attention,
    _compiled,
    _edge_lists,
    _forwards,
    _names,
    _products,
    _relations,
)
from warploom.pyg._propagate import forwarding, propagate, serving
from warploom.pyg._switch import replace

# Code of their own, by class of layers.
_FORWARDS: dict[type, Callable[..., Any]] = {
    **_forwards.FORWARDS,
    **_attention.FORWARDS,
    **_relations.FORWARDS,
}
_PROPAGATES: dict[type, Callable[..., Any]] = {**_products.PROPAGATES, **_attention.PROPAGATES}


def _wrap_propagate(cls: type) -> None:
    is_own = cls in _PROPAGATES
    wrap = serving(_PROPAGATES.get(cls, propagate), cls if is_own else None, _attention.LAYERS)
    for name in _names.PROPAGATES:
        found = vars(cls).get(name)
        if found is None or hasattr(found, "is_accelerated"):
            continue
        if _names.is_made_by_pyg(cls, found):
            setattr(cls, name, wrap(found))


def _wrapping(original: Callable[..., None]) -> Callable[..., None]:
    """What PyG calls when it makes a layer, where the class may get its propagate."""

    @functools.wraps(original)
    def made(self: MessagePassing, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        _wrap_propagate(type(self))

    return made


def install() -> None:
    """Wrap the propagate of all layers, also of those that are made later, and some forwards."""
    _compiled.install()
    for cls in dict.fromkeys((*_FORWARDS, *_PROPAGATES, *_attention.LAYERS)):
        _names.note_methods(cls)
    _attention.install()
    for cls in dict.fromkeys((*_edge_lists.install(), *_FORWARDS)):
        # Of layers whose message is not traced, and that have no propagate of their own.
        counts_refusals = cls in _attention.LAYERS and cls not in _PROPAGATES
        replace(cls, "forward", forwarding(cls, _FORWARDS.get(cls), counts_refusals))
    classes = [MessagePassing]
    for cls in classes:
        classes += cls.__subclasses__()
        _wrap_propagate(cls)
    replace(MessagePassing, _names.MAKES_PROPAGATE, _wrapping)
