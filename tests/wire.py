"""A wire to Postgres that tests can cut or let hang: bytes go through a proxy on loopback, while it is open."""

import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from psycopg.conninfo import conninfo_to_dict, make_conninfo


class Wire:
    """Listens on loopback and passes bytes on to the server behind a URL. While `hangs` is set it keeps every
    connection open and passes nothing on: what is said to it is heard and never answered. `reached` are the ports by
    which the server knew its connections, each with when it was opened."""

    def __init__(self, url: str) -> None:
        self.target = conninfo_to_dict(url)
        self.hangs = threading.Event()
        self.ended = threading.Event()
        self.pairs: list[tuple[socket.socket, socket.socket]] = []
        self.opened = 0
        self.reached: list[tuple[float, int]] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.url = make_conninfo(url, host="127.0.0.1", port=self.port)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            self.opened += 1
            threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        try:
            far = self._reach()
        except OSError:
            near.close()  # the server is away
            return
        self._pass(near, far)

    def _reach(self) -> socket.socket:
        host, port = str(self.target["host"]), int(str(self.target.get("port", 5432)))
        if not host.startswith("/"):
            far = socket.create_connection((host, port))
            self.reached.append((time.time(), far.getsockname()[1]))
            return far
        far = socket.socket(socket.AF_UNIX)
        far.connect(f"{host}/.s.PGSQL.{port}")
        return far

    def _pass(self, near: socket.socket, far: socket.socket) -> None:
        self.pairs.append((near, far))
        other = {near: far, far: near}
        try:
            while not self.ended.is_set():
                if self.hangs.is_set():
                    self.ended.wait(0.01)
                    continue
                for one in select.select([near, far], [], [], 0.02)[0]:
                    data = one.recv(65536)
                    if not data:
                        return
                    if not self.hangs.is_set():
                        other[one].sendall(data)
        except (OSError, ValueError):
            pass
        finally:
            near.close()
            far.close()

    def silent(self, seconds: float = 0.2) -> bool:
        """Whether nothing comes back for so long from a server that is asked whether it speaks TLS."""
        with socket.create_connection(("127.0.0.1", self.port)) as near:
            near.settimeout(seconds)
            near.sendall(struct.pack("!ii", 8, 80877103))
            try:
                near.recv(1)
            except TimeoutError:
                return True
        return False

    def cut(self) -> None:
        """Close every connection."""
        for pair in self.pairs:
            for one in pair:
                one.close()
        self.pairs.clear()

    def end(self) -> None:
        """Take no more connections, and close all."""
        self.ended.set()
        # A thread that waits in accept would keep the port open.
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()


@contextmanager
def wire(url: str) -> Iterator[Wire]:
    """A wire to the server of this URL."""
    found = Wire(url)
    try:
        yield found
    finally:
        if not found.ended.is_set():
            found.end()
