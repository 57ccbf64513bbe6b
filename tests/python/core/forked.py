"""Children of fork, and locks that other threads hold when a process forks."""

import os
import signal
import threading
from contextlib import contextmanager


def in_a_child(work):
    """Run work() in a child of fork; returns its text, or that of its exception."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            text = work()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return text


@contextmanager
def in_another_thread(context):
    """Within this another thread is within a context, for example that of a lock."""
    begun, ends = threading.Event(), threading.Event()

    def hold():
        with context:
            begun.set()
            ends.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        ends.set()
        thread.join()
