#!/usr/bin/env python3
"""hub.py MODEL COMMAND...: a Hugging Face hub on this machine's loopback, for the time of a command.

The command finds it in HF_ENDPOINT. Its repositories are acme/NAME, and the name says how it behaves.
Files are sent by a second server (a CDN, under another host name), to which the first one redirects.
HUB_LOG, if set, gets a line "METHOD PATH RANGE AUTHORIZATION" for each request.
"""
import hashlib
import http.server
import json
import os
import socketserver
import subprocess
import sys
import threading
import time

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODEL = open(sys.argv[1], "rb").read()
OTHER = bytes(reversed(MODEL))
PART = len(MODEL) // 2  # bytes that a server sends before it breaks off

FILES = {"tiny-Q8_0.gguf": MODEL + b"8", "sub/tiny-Q4_K_M.gguf": MODEL, "tiny-Q4_K_S.gguf": OTHER,
         "mmproj-tiny-Q4_K_M.gguf": OTHER}
REPOSITORIES = {
    "Split": {f"Q4_K_M/split-Q4_K_M-0000{i}-of-00003.gguf": MODEL + bytes([i]) for i in (1, 2, 3)},
    "PartMissing": {f"x-Q4_K_M-0000{i}-of-00003.gguf": MODEL for i in (1, 3)},
    "OneFile": {"one-weird.gguf": MODEL},
    "Folders": {"IQ2_S/model.gguf": OTHER, "iq4_nl/model.gguf": MODEL},
    "Unclear": {"a-IQ2_S.gguf": MODEL, "b-IQ3_S.gguf": MODEL},
    "NoModel": {"model.safetensors": MODEL},
    "Names": {name: OTHER for name in (
        "../../../../evil-Q4_K_M.gguf", "/tmp/pronk-evil-Q4_K_M.gguf", "a/../../../../b-Q4_K_M.gguf",
        ".hidden-Q4_K_M.gguf", "a/.git/Q4_K_M.gguf", "-rf-Q4_K_M.gguf", "a//Q4_K_M.gguf",
        "evil\x1b[2J-Q4_K_M.gguf", "new\nline-Q4_K_M.gguf", 'quote"-Q4_K_M.gguf', "$(id)-Q4_K_M.gguf",
        "back\\slash-Q4_K_M.gguf", "x" * 300 + "-Q4_K_M.gguf", "Q4_K_M.gguf/")} | {"good-Q8_0.gguf": MODEL},
}
sent = {}  # how often a file of a repository was asked for


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, body=b"", headers=(), length=None):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def endless(self):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        while True:
            self.wfile.write(b"[" * 65536)

    def do_GET(self):
        self.close_connection = True
        if "HUB_LOG" in os.environ:
            with open(os.environ["HUB_LOG"], "a") as log:
                print(self.command, self.path, self.headers.get("Range"),
                      self.headers.get("Authorization"), file=log)
        try:
            self.respond()
        except (BrokenPipeError, ConnectionResetError):
            pass

    def respond(self):
        path, _, query = self.path.partition("?")
        words = path.strip("/").split("/")
        if words[0] == "cdn":
            return self.send_file(words[1], "/".join(words[2:]))
        repo = words[3] if words[0] == "api" else words[1]
        refusals = {"Unknown": 404, "Busy": 429, "Broken": 503, "Odd": 418}
        if repo in refusals:
            return self.answer(refusals[repo], b"<html>\x1b[2J", [("Retry-After", "7")])
        if repo == "Gated" and self.headers.get("Authorization") != "Bearer hf_secret":
            return self.answer(401, b'{"error": "gated"}')
        if words[0] != "api":
            return self.redirect(repo, "/".join(words[4:]))
        if words[4] == "revision":
            answers = {"Html": b"<!DOCTYPE html>", "Deep": b"[" * 100_000, "Nul": b'{"sha": "\0"}',
                       "Open": b'{"sha": "abc', "WrongCommit": b'{"sha": "../../../../../../../evil"}',
                       "Empty": b""}
            if repo == "EndlessList":
                return self.endless()
            if repo == "ListToFile":
                return self.answer(302, b"", [("Location", "file:///etc/passwd")])
            usual = {"_id": 1, "tags": ["a,b", {"sha": "no"}], "quote": 'a"b\\', "sha": COMMIT}
            return self.answer(200, answers.get(repo, json.dumps(usual).encode()))
        if repo == "Pages" and "cursor" not in query:
            files = [{"type": "directory", "oid": "1", "size": 0, "path": "x" * 9}]
            link = f'<http://elsewhere{path}?recursive=true&cursor=ab%3D>; rel="next"'
            return self.answer(200, json.dumps(files).encode(), [("Link", link)])
        self.answer(200, json.dumps(self.list_of(repo)).encode())

    def list_of(self, repo):
        files = [{"type": "file", "oid": "b" * 40, "size": 9, "path": "README.md"}]
        for name, data in REPOSITORIES.get(repo, FILES).items():
            lfs = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
            if repo == "NoHash":
                lfs = {}
            if repo == "Huge":
                lfs["size"] = 1 << 43
            files.append({"type": "file", "oid": "b" * 40, "size": lfs.get("size", 9), "lfs": lfs,
                          "xetHash": "c" * 64, "path": name})
        return files

    def redirect(self, repo, name):
        elsewhere = {"ToFile": "file:///etc/passwd", "ToFtp": "ftp://localhost/x", "ToItself": self.path}
        location = elsewhere.get(repo, f"http://localhost:{cdn.server_address[1]}/cdn/{repo}/{name}")
        self.answer(302, b"", [("Location", location), ("X-Repo-Commit", COMMIT)])

    def send_file(self, repo, name):
        data = REPOSITORIES.get(repo, FILES).get(name)
        if data is None:
            return self.answer(404)
        n_sent = sent[repo] = sent.get(repo, 0) + 1
        if repo == "Endless":
            return self.endless()
        if repo == "Lies":
            data = bytes(len(data))
        if repo == "Longer":
            data += bytes(100_000)
        if repo == "Shorter":
            data = data[:100]
        start = 0
        wanted = self.headers.get("Range")
        if wanted and repo != "NoRanges":
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
        ranged = [("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")] if start else []
        if start >= len(data):
            return self.answer(416)
        breaks = repo in ("Truncates", "Slow", "Stuck") or (repo == "NoRanges" and n_sent == 1)
        body = data[start:]
        self.answer(206 if start else 200, b"" if repo == "Nothing" else body[:PART] if breaks else body,
                    ranged, len(body))
        if n_sent == 1 and repo in ("Slow", "Stuck"):
            self.wfile.flush()
            time.sleep(1 if repo == "Slow" else 60)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


hub, cdn = Server(("127.0.0.1", 0), Handler), Server(("127.0.0.1", 0), Handler)
for server in (hub, cdn):
    threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ.setdefault("HF_ENDPOINT", f"http://127.0.0.1:{hub.server_address[1]}")
status = subprocess.call(sys.argv[2:])
sys.stdout.flush()
os._exit(status if status >= 0 else 128 - status)
