"""A download that is killed half-way goes on where it was, and there is never half a file under the file's name."""

import hashlib
import http.server
import subprocess
import sys
import threading
import time

import pytest

from attnlib.data.download import fetch

DATA = bytes(range(256)) * 4_000
MD5 = hashlib.md5(DATA).hexdigest()


class Server(http.server.BaseHTTPRequestHandler):
    ranges, stop_after, slow = True, None, 0.0  # what it can do, after how many bytes it breaks off, seconds a block
    asked: list = []

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.asked.append(wanted)
        first = int(wanted.split("=")[1].rstrip("-")) if wanted and self.ranges else 0
        if first >= len(DATA):
            self.send_error(416)
            return
        body = DATA[first:]
        self.send_response(206 if wanted and self.ranges else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        sent = 0
        try:
            for start in range(0, len(body), 64_000):
                if self.stop_after is not None and sent >= self.stop_after:
                    return
                self.wfile.write(body[start : start + 64_000])
                sent += 64_000
                time.sleep(self.slow)
        except (BrokenPipeError, ConnectionResetError):
            pass  # whoever asked is gone

    def log_message(self, *args):
        pass


@pytest.fixture
def serve():
    servers = []

    def start(**options):
        handler = type("Handler", (Server,), {"asked": [], **options})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/file", handler

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_it_is_fetched_once(serve, tmp_path):
    url, handler = serve()
    path = fetch(url, tmp_path / "new" / "file", MD5)
    assert path.read_bytes() == DATA
    assert fetch(url, path, MD5) == path and len(handler.asked) == 1
    assert [file.name for file in path.parent.iterdir()] == ["file"]


def test_killed_half_way_it_goes_on_where_it_was(serve, tmp_path):
    url, handler = serve(slow=0.05)
    code = f"from attnlib.data.download import fetch; fetch({url!r}, {str(tmp_path / 'file')!r}, {MD5!r}, block=10_000)"
    process = subprocess.Popen([sys.executable, "-c", code])
    part = tmp_path / "file.part"
    deadline = time.monotonic() + 30
    while not (part.exists() and part.stat().st_size > 100_000) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    have = part.stat().st_size
    assert 0 < have < len(DATA) and not (tmp_path / "file").exists()
    handler.slow = 0.0
    assert fetch(url, tmp_path / "file", MD5).read_bytes() == DATA
    assert handler.asked == [None, f"bytes={have}-"] and not part.exists()


def test_a_server_that_breaks_off_leaves_the_part(serve, tmp_path):
    url, handler = serve(stop_after=300_000)
    with pytest.raises(OSError, match="call again to go on"):
        fetch(url, tmp_path / "file", MD5)
    assert not (tmp_path / "file").exists()
    handler.stop_after = None
    assert fetch(url, tmp_path / "file", MD5).read_bytes() == DATA


def test_a_server_that_sends_chunks_and_breaks_off_leaves_the_part(serve, tmp_path):
    class InChunks(Server):
        def do_GET(self):
            self.protocol_version = "HTTP/1.1"
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"1000\r\n" + DATA[:4096] + b"\r\n1000\r\n" + DATA[4096:5000])
            self.close_connection = True

    url, _ = serve(do_GET=InChunks.do_GET)
    with pytest.raises(OSError, match="broken off after 4096 bytes; call again to go on"):
        fetch(url, tmp_path / "file", MD5)
    assert (tmp_path / "file.part").read_bytes() == DATA[:4096]  # the chunks that came whole


def test_a_server_without_ranges_sends_all_anew(serve, tmp_path):
    url, _ = serve(ranges=False)
    (tmp_path / "file.part").write_bytes(DATA[:1_000])
    assert fetch(url, tmp_path / "file", MD5).read_bytes() == DATA


def test_a_part_that_is_whole_only_needs_its_name(serve, tmp_path):
    url, handler = serve()
    (tmp_path / "file.part").write_bytes(DATA)
    assert fetch(url, tmp_path / "file", MD5).read_bytes() == DATA and not handler.asked


def test_what_is_not_the_file_is_thrown_away(serve, tmp_path):
    url, _ = serve()
    (tmp_path / "file.part").write_bytes(b"x" * 1_000)
    with pytest.raises(ValueError, match="another md5 checksum.*it was deleted"):
        fetch(url, tmp_path / "file", MD5)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file.part").write_bytes(b"x" * (len(DATA) + 1))  # longer than the file: the server has nothing to add
    with pytest.raises(ValueError, match="it was deleted"):
        fetch(url, tmp_path / "file", MD5)
    (tmp_path / "file").write_bytes(b"other")
    with pytest.raises(ValueError, match="Try to delete it"):
        fetch(url, tmp_path / "file", MD5)


def test_what_cannot_be_fetched_is_said(tmp_path):
    with pytest.raises(ValueError, match="begins with https://"):
        fetch("file:///somewhere", tmp_path / "file", MD5)
    with pytest.raises(OSError, match="refused"):
        fetch("http://127.0.0.1:9/file", tmp_path / "file", MD5)
    assert not list(tmp_path.iterdir())
