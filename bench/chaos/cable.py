"""A network cable between a process and its database. Cut, it swallows everything and closes nothing."""

import socket
import threading
from contextlib import suppress

CHUNK = 65536


class Cable:
    """Listens on a port of its own and passes everything on to another."""

    def __init__(self, to: int) -> None:
        self.to = to
        self.whole = threading.Event()
        self.whole.set()
        self.ends: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """From now on nothing comes through, and nobody is told."""
        self.whole.clear()

    def mend(self, *, reset: bool) -> None:
        """Pass everything on again: what waited meanwhile too, or, with `reset`, close what had been open."""
        if reset:
            self._close_all()
        self.whole.set()

    def close(self) -> None:
        """Take it away."""
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # or the thread that waits there would still take one
        self.listener.close()
        self._close_all()
        self.whole.set()

    def _close_all(self) -> None:
        ends, self.ends = self.ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        self.ends.append(near)
        self.whole.wait()
        try:
            far = socket.create_connection(("127.0.0.1", self.to), timeout=5)
            far.settimeout(None)
        except OSError:
            near.close()
            return
        self.ends.append(far)
        threading.Thread(target=self._pass, args=(near, far), daemon=True).start()
        self._pass(far, near)

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        # Whatever ends this end ends the other as well.
        with suppress(OSError):
            while data := one.recv(CHUNK):
                self.whole.wait()
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
