"""A small HTTP server on this machine that answers like the Hugging Face hub, with a repository from a folder."""

import base64
import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MAIN = "/api/models/{}/revision/main"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        path = urlsplit(self.path).path
        self.server.asked.append(path)
        name, folder = self.server.repository
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        names = [file.relative_to(folder).as_posix() for file in files]
        if path in (f"/api/models/{name}", f"/api/models/{name}/revision/{COMMIT}", MAIN.format(name)):
            card = {"license": "mit"}
            self.answer({"id": name, "sha": COMMIT, "cardData": card, "siblings": [{"rfilename": n} for n in names]})
        elif path.startswith(f"/api/models/{name}/tree/{COMMIT}"):
            tree = [
                {"type": "file", "path": n, "size": f.stat().st_size, "oid": hashlib.sha1(f.read_bytes()).hexdigest()}
                for n, f in zip(names, files, strict=True)
            ]
            self.answer(tree)
        elif path.startswith(f"/{name}/resolve/{COMMIT}/") and (wanted := path.split("/", 5)[-1]) in names:
            self.broken(wanted) if wanted in self.server.broken else self.file(folder / wanted)
        else:
            self.answer({"error": "Repository not found"}, status=404, headers={"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET

    def do_POST(self):
        """Take an upload: make the repository, say that all files are small, take the commit."""
        path = urlsplit(self.path).path
        self.server.asked.append(path)
        name, folder = self.server.repository
        here = f"http://127.0.0.1:{self.server.server_port}"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if path == "/api/repos/create":
            self.answer({"url": f"{here}/{name}", "name": name, "id": name})
        elif path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif path == f"/api/models/{name}/preupload/main":
            files = json.loads(body)["files"]
            self.answer({"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in files]})
        elif path == f"/api/models/{name}/commit/main":
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    target = folder / line["value"]["path"]
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(base64.b64decode(line["value"]["content"]))
            self.answer({"commitUrl": f"{here}/{name}/commit/{COMMIT}", "commitOid": COMMIT})
        else:
            self.answer({"error": "not here"}, status=404)

    def file(self, path):
        data = path.read_bytes()
        self.answer(data, headers={"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": COMMIT})

    def broken(self, name):
        self.answer({"error": "gone"}, status=404, headers={"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})

    def answer(self, value, *, status=200, headers=None):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for key, text in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def hub(name, folder, *, broken=()):
    """Serve `folder` as the repository `name`; what is asked for is listed in the server's `asked`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.repository, server.broken, server.asked = (name, folder), broken, []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
