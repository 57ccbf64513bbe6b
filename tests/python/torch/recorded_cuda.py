"""A stand-in for torch.cuda, which captures what PyTorch's operators do on the CPU.

A capture runs each operator, so that there are results to go on with, and undoes at its end what
they changed. A replay runs them again, into the results of the capture. Work that is no operator
of PyTorch is not recorded.
"""

import contextlib
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

WAITS = torch.ops.aten._local_scalar_dense.default


def tensors_of(values):
    return [value for value in tree_leaves(values) if isinstance(value, torch.Tensor)]


def written_by(function, args, kwargs):
    """The arguments that an operator writes to."""
    written = []
    for at, argument in enumerate(function._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            written.append(args[at] if at < len(args) else kwargs.get(argument.name))
    return tensors_of(written)


class _Warn(TorchDispatchMode):
    """Warns of waits for the device as the mode "warn" of CUDA does."""

    def __init__(self, cuda):
        super().__init__()
        self.cuda = cuda

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is WAITS and self.cuda.sync_debug_mode == "warn":
            warnings.warn("called a synchronizing CUDA operation (Triggered ...)", stacklevel=2)
        return function(*args, **(kwargs or {}))


class _Record(TorchDispatchMode):
    def __init__(self, graph):
        super().__init__()
        self.calls, self.old = graph.calls, []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is WAITS:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nMore")
        self.old += [(t, t.clone()) for t in written_by(function, args, kwargs)]
        out = function(*args, **kwargs)
        self.calls.append((function, args, kwargs, out))
        return out


class CUDAGraph:
    def __init__(self):
        self.calls, self.replays = [], 0

    @torch.no_grad()
    def replay(self):
        self.replays += 1
        for function, args, kwargs, out in self.calls:
            written = tuple(written_by(function, args, kwargs))
            with torch.autograd._unsafe_preserve_version_counter(written):  # as CUDA does
                made = function(*args, **kwargs)
            for old, new in zip(tensors_of(out), tensors_of(made), strict=True):
                if old.data_ptr() != new.data_ptr():
                    old.copy_(new)


class Stream:
    def wait_stream(self, other):
        pass


class Cuda:
    """What `capture` uses of torch.cuda, and a list of the graphs, pools and streams it used."""

    CUDAGraph = CUDAGraph

    def __init__(self):
        self.sync_debug_mode = "default"
        self.default = self.current = Stream()
        self.graphs, self.pools, self.streams = [], set(), []
        self.left = []  # pools that the allocator was told to leave

    def is_available(self):
        return True

    def is_current_stream_capturing(self):
        return False

    def Stream(self):
        return Stream()

    def graph_pool_handle(self):
        return "the pool"

    def current_device(self):
        return 0

    def current_stream(self):
        return self.current

    def set_stream(self, stream):
        self.current = stream

    def get_sync_debug_mode(self):
        return self.sync_debug_mode

    def set_sync_debug_mode(self, mode):
        if mode == "warn":
            warnings.warn("Synchronization debug mode is a prototype feature", stacklevel=2)
        self.sync_debug_mode = mode

    @contextlib.contextmanager
    def stream(self, stream):
        self.streams.append(stream)
        before, self.current = self.current, stream
        try:
            with _Warn(self):
                yield
        finally:
            self.current = before

    @contextlib.contextmanager
    def graph(self, graph, pool=None, stream=None, capture_error_mode="global"):
        self.graphs.append(graph)
        self.pools.add(pool)
        self.current = stream  # a capture that fails does not restore it
        record = _Record(graph)
        try:
            with record:
                yield
        finally:
            with torch.no_grad():
                for tensor, old in reversed(record.old):
                    tensor.copy_(old)
        self.current = self.default
        if not graph.calls:
            warnings.warn("The CUDA Graph is empty. This usually means ...", stacklevel=1)
