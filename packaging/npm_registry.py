"""Registry for npm on the loopback interface, which serves the packages of a directory and nothing else."""

import hashlib
import json
import tarfile
import threading
import urllib.parse
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Registry:
    """Serves the `.tgz` files of a directory from `with` on: `registry.url` is what npm takes."""

    def __init__(self, directory: Path) -> None:
        self.files, self.packages = {}, {}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        for file in directory.glob("*.tgz"):
            with tarfile.open(file) as archive:
                described = json.load(archive.extractfile("package/package.json"))
            content = file.read_bytes()
            self.files[file.name] = content
            digest = b64encode(hashlib.sha512(content).digest()).decode()
            described["dist"] = {"tarball": f"{self.url}-/{file.name}", "integrity": f"sha512-{digest}"}
            name, version = described["name"], described["version"]
            self.packages[name] = {"name": name, "dist-tags": {"latest": version}, "versions": {version: described}}

    def _handler(self) -> type:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = urllib.parse.unquote(self.path).lstrip("/")
                if path.startswith("-/"):
                    body = registry.files.get(path[2:])
                else:
                    package = registry.packages.get(path)
                    body = package and json.dumps(package).encode()
                self.send_response(200 if body else 404)
                body = body or b'{"error":"not found"}'
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def __enter__(self) -> "Registry":
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
