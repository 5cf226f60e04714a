# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP side of the emulated API server: paths, verbs, errors. Listens on loopback alone.

``python -m emulator --port-file F [--state cluster.yml]`` serves until it is stopped by a signal.
"""

from __future__ import annotations

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from . import eviction, kinds, wire
from .store import Refused, Store, merge

_PATH = re.compile(
    r"^/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?$")


class Server(ThreadingHTTPServer):
    """Serves one store. ``faults`` maps a pattern of ``VERB path`` to (code, reason, message).

    A request that matches a pattern of ``stopped`` is not answered (``reached`` is set) until the pattern is taken out,
    and then dropped: the moment in which a client can be killed.
    """

    daemon_threads = True

    def __init__(self, store: Store, version: str = "v1.34.1", token: str | None = None, port: int = 0) -> None:
        self.store = store
        self.version = version
        self.token = token
        self.faults: dict[str, tuple[int, str, str]] = {}
        self.stopped: set[str] = set()
        self.reached = threading.Event()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Stay quiet."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        query = {key: value[-1] for key, value in parse_qs(url.query).items()}
        try:
            self._check(url.path)
            if self.command == "GET" and query.get("watch") in ("true", "1"):
                self._watch(url.path, query)
                return
            with self.server.store.lock:
                code, answer = self._answer(url.path, query, body)
        except Refused as exc:
            code, answer = exc.code, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                                      "message": str(exc), "reason": exc.reason, "code": exc.code,
                                      "details": exc.details}
        plain = isinstance(answer, str)
        raw = answer.encode() if plain else json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain" if plain else "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _watch(self, path: str, query: dict[str, str]) -> None:
        """Stream the changes of one kind until the client has enough. Raises Refused for a path that is not there."""
        found = _PATH.match(path)
        if found is None:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        store = self.server.store
        with store.lock:
            kind = store.kind(found["group"] or "", found["core"] or found["version"], found["plural"])
        since, until = int(query.get("resourceVersion") or 0), time.monotonic() + int(query.get("timeoutSeconds") or 30)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            if query.get("sendInitialEvents") == "true":
                since = self._begin(store, kind, found["namespace"] or "")
            while time.monotonic() < until:
                with store.lock:
                    fresh = [one for one in store.events if one[0] > since]
                for at, event, key, seen in fresh:
                    since = at
                    if key[:2] == (kind.group, kind.plural) and found["namespace"] in (None, key[2]):
                        self._tell(event, {**seen, "apiVersion": kind.group_version, "kind": kind.kind})
                time.sleep(0.1)
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):    # the client has seen enough
            self.close_connection = True

    def _begin(self, store: Store, kind: kinds.Kind, where: str) -> int:
        """Tell a watcher what is there already, and that this is the end of it; return the version up to which."""
        with store.lock:
            there, now = store.list(kind, where), store.changes
        for one in there:
            self._tell("ADDED", one)
        self._tell("BOOKMARK", {"apiVersion": kind.group_version, "kind": kind.kind, "metadata": {
            "resourceVersion": str(now), "annotations": {"k8s.io/initial-events-end": "true"}}})
        return now

    def _tell(self, event: str, seen: dict[str, Any]) -> None:
        raw = json.dumps({"type": event, "object": seen}).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))

    def _check(self, path: str) -> None:
        token = self.server.token
        if token is not None and self.headers.get("Authorization") != f"Bearer {token}":
            raise Refused(401, "Unauthorized", "Unauthorized")
        for pattern in self.server.stopped:
            if re.search(pattern, f"{self.command} {path}"):
                self.server.reached.set()
                while pattern in self.server.stopped:
                    time.sleep(0.1)
                raise Refused(503, "ServiceUnavailable", "the request was dropped")
        for pattern, (code, reason, message) in self.server.faults.items():
            if re.search(pattern, f"{self.command} {path}"):
                raise Refused(code, reason, message)

    def _answer(self, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        about = self._about(path)
        if about is not None:
            return 200, about
        found = _PATH.match(path)
        if found is None:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        store = self.server.store
        kind = store.kind(found["group"] or "", found["core"] or found["version"], found["plural"])
        where, name = found["namespace"] or "", found["name"]
        if self.command == "GET":
            return 200, self._get(store, kind, where, name, found["sub"], query)
        given = self._given(body)
        store.writes.append(f"{self.command} {kind.plural}/{name or (given.get('metadata') or {}).get('name')}"
                            + (f"/{found['sub']}" if found["sub"] else "")
                            + (" (dry run)" if "dryRun" in query else ""))
        if found["sub"] == "eviction" and self.command == "POST":
            return 201, self._dry(store, "dryRun" in query,
                                  lambda: eviction.evict(store, kind, where, name or "", given))
        return self._write(store, kind, where, name, given, query)

    def _given(self, body: bytes) -> Any:
        """The body of a request. Raises Refused for a protobuf message of a kind that is not read here."""
        if body.startswith(wire.MAGIC):
            try:
                return wire.decode(body)
            except wire.Unread as exc:
                raise Refused(415, "UnsupportedMediaType", f"the emulator does not read {exc}") from exc
        return yaml.safe_load(body) if body else {}

    def _about(self, path: str) -> Any:
        """Answers about the server itself, None for a path to objects."""
        known = self.server.store.kinds()
        if path in ("/version", "/version/"):
            major, minor = self.server.version.lstrip("v").split(".")[:2]
            return {"major": major, "minor": minor, "gitVersion": self.server.version, "platform": "linux/amd64"}
        if path in ("/healthz", "/readyz", "/livez"):
            return "ok"
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        if path == "/apis":
            return kinds.groups(known)
        if path == "/openapi/v3":
            return kinds.openapi_index(known)
        if path.startswith("/openapi/v3/"):
            return kinds.openapi(known, re.sub(r"^/openapi/v3/apis?/", "", path))
        if path == "/openapi/v2":
            return ""    # an empty protobuf document
        parts = path.strip("/").split("/")
        if path == "/api/v1":
            return kinds.discovery(known, "v1")
        if parts[0] == "apis" and len(parts) == 3:
            listed = kinds.discovery(known, "/".join(parts[1:]))
            if listed is not None:
                return listed
        if parts[0] == "apis" and len(parts) == 2:
            found = [one for one in kinds.groups(known)["groups"] if one["name"] == parts[1]]
            if found:
                return {"kind": "APIGroup", "apiVersion": "v1", **found[0]}
        return None

    def _get(self, store: Store, kind: kinds.Kind, where: str, name: str | None, sub: str | None,
             query: dict[str, str]) -> Any:
        if name is None:
            items = store.list(kind, where, query.get("labelSelector", ""), query.get("fieldSelector", ""))
            return {"kind": f"{kind.kind}List", "apiVersion": kind.group_version,
                    "metadata": {"resourceVersion": str(store.changes)}, "items": items}
        found = store.get(kind, where, name)
        if sub == "log":
            return (found["metadata"].get("annotations") or {}).get("emulator/log", "")
        return found

    def _write(self, store: Store, kind: kinds.Kind, where: str, name: str | None, given: Any,
               query: dict[str, str]) -> tuple[int, Any]:
        dry = "dryRun" in query
        if self.command == "POST":
            return 201, self._dry(store, dry, lambda: store.create(kind, where, given))
        if name is None:
            raise Refused(405, "MethodNotAllowed", f"{self.command} is not allowed here")
        if self.command == "DELETE":
            return 200, store.get(kind, where, name) if dry else store.delete(kind, where, name)
        if self.command == "PUT":
            return 200, self._dry(store, dry, lambda: store.replace(kind, where, name, given))
        if "apply-patch" in (self.headers.get("Content-Type") or ""):
            manager = query.get("fieldManager", "")
            return 200, self._dry(store, dry, lambda: store.apply(kind, where, name, given, manager, dry))
        before = store.get(kind, where, name)
        after = _json_patch(before, given) if isinstance(given, list) else merge(before, given)
        after["metadata"].pop("resourceVersion", None)
        return 200, self._dry(store, dry, lambda: store.replace(kind, where, name, after))

    @staticmethod
    def _dry(store: Store, dry: bool, act: Any) -> Any:
        if not dry:
            return act()
        kept, changes, watchers = dict(store.objects), store.changes, store.watchers
        store.watchers = []
        try:
            return act()
        finally:
            store.objects, store.changes, store.watchers = kept, changes, watchers


def _json_patch(before: Any, steps: list[dict[str, Any]]) -> Any:
    after = merge({}, before)
    for step in steps:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].lstrip("/").split("/")]
        here = after
        for key in parents:
            here = here[int(key)] if isinstance(here, list) else here.setdefault(key, {})
        if step["op"] == "remove":
            here.pop(int(last) if isinstance(here, list) else last, None)
        else:
            here[last] = step["value"]
    return after
