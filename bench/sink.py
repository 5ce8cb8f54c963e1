"""A receiver in a process of its own: it answers every POST with 200 after a pause. `python -m bench.sink SECONDS`
prints its port."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pause: float) -> None:
    """Every request of one connection."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = LENGTH.search(head)
            await reader.readexactly(int(length[1]) if length else 0)
            if pause:
                await asyncio.sleep(pause)
            writer.write(ANSWER)
            if b"connection: close" in head.lower():
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def serve(pause: float) -> None:
    """Until the process is ended."""
    server = await asyncio.start_server(lambda reader, writer: answer(reader, writer, pause), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def sink(pause: float = 0.0) -> Iterator[str]:
    """The address of a receiver that pauses so many seconds before each answer."""
    command = [sys.executable, "-m", "bench.sink", str(pause)]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert running.stdout is not None
        yield f"http://127.0.0.1:{int(running.stdout.readline())}"
    finally:
        running.kill()
        running.wait(10)


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
