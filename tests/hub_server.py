"""A small HTTP server on this machine that answers like the Hugging Face hub, with a repository from a folder."""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OLD = "fedcba9876543210fedcba9876543210fedcba98"  # what the tag v1 names, where there is one
ASKED = re.compile(r"(/api/models)?/([^/]+/[^/]+?)(?:/(revision|tree|resolve)/([^/]+)(?:/(.+))?)?/?")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        path = urlsplit(self.path).path
        self.server.asked.append(path)
        found = ASKED.fullmatch(path)
        api, name, what, revision, wanted = found.groups() if found else (None,) * 5
        commit = {None: COMMIT, "main": COMMIT, "v1": OLD}.get(revision, revision)
        folder = self.server.commits.get(commit)
        if name != self.server.repository[0]:
            return self.answer({"error": "not found"}, status=404, headers={"X-Error-Code": "RepoNotFound"})
        if folder is None:
            return self.answer({"error": "not found"}, status=404, headers={"X-Error-Code": "RevisionNotFound"})
        files = {f.relative_to(folder).as_posix(): f for f in sorted(folder.rglob("*")) if f.is_file()}
        if api and what in (None, "revision"):
            siblings = [{"rfilename": n} for n in files]
            return self.answer({"id": name, "sha": commit, "cardData": {"license": "mit"}, "siblings": siblings})
        if api and what == "tree":
            hashes = {n: hashlib.sha1(f.read_bytes()).hexdigest() for n, f in files.items()}
            tree = [{"type": "file", "path": n, "size": files[n].stat().st_size, "oid": hashes[n]} for n in files]
            return self.answer(tree)
        if wanted not in files or wanted in self.server.broken:
            headers = {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}
            return self.answer({"error": "gone"}, status=404, headers=headers)
        return self.file(files[wanted], commit)

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

    def file(self, path, commit):
        data = path.read_bytes()
        self.answer(data, headers={"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": commit})

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
def hub(name, folder, *, broken=(), old=None):
    """Serve `folder` as the repository `name`, and `old` as its tag v1; what is asked for is in `asked`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.repository, server.broken, server.asked = (name, folder), broken, []
    server.commits = {COMMIT: folder} | ({OLD: old} if old else {})
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
