"""A child of fork, as a web server makes them: what was open before is used in it."""

from __future__ import annotations

import os
from collections.abc import Callable


def status_of_child(work: Callable[[], object]) -> int:
    """Do `work` in a child of fork and return how that ended; 0 where nothing was raised."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)  # never back into the tests, whatever happens
    return os.waitpid(child, 0)[1]
