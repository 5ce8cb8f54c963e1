"""An engine in a process of its own, for tests that kill it: python -m tests.engine_process URL LEASE."""

import sys
import threading

from escalade.dispatch import Settings
from tests.engines import make_engine

if __name__ == "__main__":
    engine = make_engine(sys.argv[1], settings=Settings(lease=float(sys.argv[2]), deadline=0.5, poll=0.1))
    engine.start()
    threading.Event().wait()
