"""A hub on 127.0.0.1 that answers as huggingface.co does, and misbehaves where a test asks it to."""

import hashlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "a" * 40


@dataclass
class Hub:
    """files: {"owner/name" or "datasets/owner/name": {path: bytes}}; large: paths served as large files are, by a
    redirect with the SHA-256 announced; commit: of every repository; cut: path -> bytes sent before the connection
    is closed; cuts: how many times; announced: path -> a wrong SHA-256; ranges: whether a Range is understood;
    sizes: whether a HEAD tells the length; chunked: whether a GET sends chunks, without a length; status: answer every
    HEAD with it; asked: [(method, path, Range or None)]."""

    files: dict
    large: set = field(default_factory=set)
    commit: str = COMMIT
    cut: dict = field(default_factory=dict)
    cuts: int = 10**6
    announced: dict = field(default_factory=dict)
    ranges: bool = True
    sizes: bool = True
    chunked: bool = False
    status: int | None = None
    hub_headers: bool = True
    asked: list = field(default_factory=list)
    url: str = ""

    def gets(self):
        return [(path, span) for method, path, span in self.asked if method == "GET"]


def serve(hub):
    """Start the server in a thread; returns it. hub.url is set."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_HEAD(self):
            self.answer("HEAD")

        def do_GET(self):
            self.answer("GET")

        def refuse(self, status, code=None):
            self.send_response(status)
            if code:
                self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def answer(self, method):
            # Large files lie on another host, to which a client may not carry its token.
            at_cdn = self.path.startswith("/cdn/")
            where, _, rest = self.path.removeprefix("/cdn").strip("/").partition("/resolve/")
            revision, _, path = rest.partition("/")
            hub.asked.append((method, path, self.headers.get("Range")))
            if at_cdn and self.headers.get("Authorization"):
                return self.refuse(400)
            if hub.status and method == "HEAD":
                return self.refuse(hub.status)
            if where not in hub.files:
                return self.refuse(404, "RepoNotFound")
            if revision not in ("main", hub.commit):
                return self.refuse(404, "RevisionNotFound")
            if path not in hub.files[where]:
                return self.refuse(404, "EntryNotFound")
            body = hub.files[where][path]
            if path in hub.large and not at_cdn:
                self.send_response(302)
                elsewhere = hub.url.replace("127.0.0.1", "localhost")
                self.send_header("Location", f"{elsewhere}/cdn/{where}/resolve/{revision}/{path}")
                digest = hub.announced.get(path) or hashlib.sha256(body).hexdigest()
                self.send_header("X-Linked-Etag", f'"{digest}"')
                self.send_header("X-Linked-Size", str(len(body)))
                self.send_header("X-Repo-Commit", hub.commit)
                self.send_header("Content-Length", "0")
                return self.end_headers()
            span = self.headers.get("Range")
            start = int(span.removeprefix("bytes=").rstrip("-")) if span and hub.ranges else 0
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            if hub.hub_headers:
                self.send_header("X-Repo-Commit", hub.commit)
            self.send_header("ETag", f'"{hashlib.sha1(body).hexdigest()}"')
            if hub.chunked and method == "GET":
                self.send_header("Transfer-Encoding", "chunked")
            elif hub.sizes or method == "GET":
                self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            if method == "GET":
                end = len(body)
                if path in hub.cut and hub.cuts > 0:
                    hub.cuts -= 1
                    end = start + hub.cut[path]
                if hub.chunked:
                    for at in range(start, end, 1000):
                        part = body[at : min(at + 1000, end)]
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
                    self.wfile.write(b"0\r\n\r\n" if end == len(body) else b"")
                else:
                    self.wfile.write(body[start:end])

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server
