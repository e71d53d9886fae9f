"""DyNet's Python programs on libvpps.

    import vpps_dynet          # before dynet
    import dynet as dy
    vpps_dynet.accelerate()    # the rest of the program stays

From then on libvpps runs all graphs, forward and backward, and makes the updates of DyNet's
trainers. Handle.fb(loss) is faster: forward, backward and update in one launch.

Errors are ValueError for what is wrong with a graph or an argument, else RuntimeError.
"""
import atexit
import ctypes
import importlib.util
import mmap
import os
import re
import sys

__all__ = ["accelerate", "device", "push", "Handle", "Ticket"]



def _load():
    """The library, and with it DyNet's, before DyNet's module. PyDLL: calls keep the interpreter's
    lock, which the library gives up while it waits. RTLD_GLOBAL: DyNet's module finds the functions
    that the library replaces."""
    if "_dynet" in sys.modules:
        raise ImportError("import vpps_dynet before dynet, whose functions are bound when it is loaded")
    module = importlib.util.find_spec("_dynet")
    if module is None:
        raise ImportError("this Python has no DyNet: pip install dyNET38")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libvpps_python.so")
    try:
        library = ctypes.PyDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise ImportError("%s: make python builds %s for a Python's DyNet" % (error, path)) from error
    with open("/proc/self/maps", encoding="utf-8") as maps:
        built_for = re.search(r"/(libdynet[^/\n]*)$", maps.read(), re.MULTILINE).group(1)
    with open(module.origin, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        if text.find(built_for.encode() + b"\0") < 0:
            raise ImportError("%s was built for %s, and %s needs another: make python PYTHON=%s" %
                              (path, built_for, module.origin, sys.executable))
    return library


_lib = _load()
_lib.vpps_python_error.restype = ctypes.c_char_p
_lib.vpps_python_handle_end.restype = None
_lib.vpps_python_handle_end.argtypes = [ctypes.c_void_p]
_lib.vpps_python_ask.restype = None
_lib.vpps_python_end.restype = None
atexit.register(_lib.vpps_python_end)
_accelerated = False


def _check(status):
    if status:
        text = _lib.vpps_python_error().decode("utf-8", "replace")
        raise (ValueError if status == 1 else RuntimeError)(text)


def _tell(method, *arguments):
    """Calls a method of DyNet's, which tells the library whom it is called for and does nothing."""
    _lib.vpps_python_ask(1)
    try:
        method(*arguments)
    finally:
        _lib.vpps_python_ask(0)


def accelerate(only_vpps=False):
    """Libvpps runs all graphs from now on, and makes the updates of all trainers.

    It begins a new graph (dynet.renew_cg): expressions made before are stale. DyNet
    computes nodes of classes that libvpps does not have. With only_vpps such a node is a ValueError.
    """
    global _accelerated
    import dynet
    _check(_lib.vpps_python_accelerate(int(only_vpps)))
    dynet.renew_cg()
    _accelerated = True


def device():
    """What runs, as "cpu: 2 threads, ..." or "cuda:0: ..."."""
    if not _accelerated:
        raise RuntimeError("no device is chosen before vpps_dynet.accelerate()")
    text = ctypes.create_string_buffer(256)
    _check(_lib.vpps_python_device(text, ctypes.c_size_t(len(text))))
    return text.value.decode()


def push(model, trainer):
    """Tells libvpps that rows of the model's tables were written (init_row), on a GPU or beside a
    Handle. The trainer is one of the model's. Other changes are noticed without it."""
    _tell(trainer.restart, trainer.learning_rate)
    _check(_lib.vpps_python_push())


class Ticket:
    """What Handle.infer gives and Handle.result takes, once."""

    def __init__(self, number, shapes):
        self.number, self.shapes = number, shapes


class Handle:
    """Trains a model with its weights resident on the chip.

        handle = vpps_dynet.Handle(model, trainer)    # after all parameters
        ...
        handle.fb(loss)    # for loss.value(), loss.backward() and trainer.update()

    What reads parameters waits for the batches: as_array, save. What writes them has to come behind
    pull(), but for set_value. It keeps model and trainer alive. Use it as a context manager, or call
    close().
    """

    def __init__(self, model, trainer):
        self._handle = None
        if not _accelerated:
            accelerate()
        _tell(trainer.restart, trainer.learning_rate)
        made = ctypes.c_void_p()
        _check(_lib.vpps_python_handle(ctypes.byref(made)))
        self._handle, self._model, self._trainer = made, model, trainer

    def fb(self, loss):
        """Forward, backward and update. It returns the loss of the call eight calls before, 0 for the
        first four, and does not wait. What was not finite is a RuntimeError of a later call."""
        stale = ctypes.c_float()
        _tell(loss.backward)
        _check(_lib.vpps_python_fb(self._open(), ctypes.byref(stale)))
        return stale.value

    def latest_loss(self):
        """Waits for all batches. The loss of the last one."""
        loss = ctypes.c_float()
        _check(_lib.vpps_python_latest_loss(self._open(), ctypes.byref(loss)))
        return loss.value

    def keep(self, expression):
        """The expression's value can be read after the next fb of its graph."""
        _tell(expression.backward)
        _check(_lib.vpps_python_keep(self._open()))

    def infer(self, *expressions):
        """Asks for the values of expressions of the present graph, and does not wait: the program
        goes on with its next graph. result(ticket) gives the values. The graph counts as not
        evaluated afterwards."""
        shapes = []
        for k, x in enumerate(expressions):
            _tell(x.backward)
            _check(_lib.vpps_python_list(self._open(), int(k == 0)))
            shape, batch = x.dim()
            shapes.append(tuple(shape) + ((batch,) if batch > 1 else ()))
        if not shapes:
            raise ValueError("infer: no expression was given")
        number = ctypes.c_uint64()
        _check(_lib.vpps_python_infer(self._open(), ctypes.byref(number)))
        return Ticket(number.value, shapes)

    def result(self, ticket):
        """Waits for the values that infer has asked for: an array like Expression.npvalue(), or a
        list of arrays for several expressions."""
        import numpy
        sizes = [int(numpy.prod(shape, dtype=numpy.int64)) for shape in ticket.shapes]
        values = numpy.empty(sum(sizes), dtype=numpy.float32)
        _check(_lib.vpps_python_result(self._open(), ctypes.c_uint64(ticket.number), values.ctypes.data_as(ctypes.c_void_p),
                                       ctypes.c_size_t(len(values))))
        parts = numpy.split(values, numpy.cumsum(sizes)[:-1])
        arrays = [part.reshape(shape, order="F") for part, shape in zip(parts, ticket.shapes)]
        return arrays[0] if len(arrays) == 1 else arrays

    def drop(self, ticket):
        """Forgets values that nobody will ask for."""
        _check(_lib.vpps_python_drop(self._open(), ctypes.c_uint64(ticket.number)))

    def pull(self):
        """Waits, and copies the parameters and what the trainer remembers into DyNet's memory."""
        _check(_lib.vpps_python_pull(self._open()))

    def close(self):
        """Waits, copies the parameters into DyNet's memory, and ends the handle."""
        handle, self._handle = self._handle, None
        if handle:
            _lib.vpps_python_handle_end(handle)

    __del__ = close

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _open(self):
        if not self._handle:
            raise ValueError("the handle is closed")
        return self._handle
