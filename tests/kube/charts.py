# SPDX-License-Identifier: GPL-3.0-or-later
"""A chart archive on loopback: as a chart repository that asks for a user, and as an OCI registry (pull alone)."""

from __future__ import annotations

import base64
import hashlib
import json
import pathlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import yaml

_USER, _PASSWORD = "mirror", "a-pass-word"
_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_CONFIG = "application/vnd.cncf.helm.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class Charts(ThreadingHTTPServer):
    """Serves one archive under ``/charts`` (with user and password) and as ``charts/gpu-operator`` under ``/v2``."""

    daemon_threads = True
    user, password = _USER, _PASSWORD

    def __init__(self, archive: pathlib.Path, version: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        content = archive.read_bytes()
        config = json.dumps({"apiVersion": "v2", "name": "gpu-operator", "version": version}).encode()
        index = {"apiVersion": "v1", "entries": {"gpu-operator": [{
            "apiVersion": "v2", "name": "gpu-operator", "version": version, "urls": [archive.name],
            "digest": hashlib.sha256(content).hexdigest()}]}}
        manifest = json.dumps({"schemaVersion": 2, "mediaType": _MANIFEST, "config": _about(config, _CONFIG),
                               "layers": [_about(content, _LAYER)]}).encode()
        self.files = {"/charts/index.yaml": yaml.safe_dump(index).encode(), f"/charts/{archive.name}": content}
        self.blobs = {_digest(one): one for one in (config, content)}
        self.manifest = manifest
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.server_address[1]}"


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _about(content: bytes, media: str) -> dict[str, Any]:
    return {"mediaType": media, "digest": _digest(content), "size": len(content)}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Charts

    def log_message(self, format: str, *args: Any) -> None:
        """Stay quiet."""

    def _serve(self) -> None:
        path = self.path.split("?")[0]
        if path in self.server.files:
            asked = base64.b64encode(f"{_USER}:{_PASSWORD}".encode()).decode()
            if self.headers.get("Authorization") != f"Basic {asked}":
                self._send(401, b"who are you", "text/plain")
            else:
                self._send(200, self.server.files[path], "application/octet-stream")
        elif path in ("/v2/", "/v2"):
            self._send(200, b"{}", "application/json")
        elif path.endswith("/tags/list"):
            self._send(200, b'{"name": "charts/gpu-operator", "tags": ["v26.7.0"]}', "application/json")
        elif path.startswith("/v2/charts/gpu-operator/manifests/"):
            self._send(200, self.server.manifest, _MANIFEST)
        elif path.rpartition("/")[2] in self.server.blobs:
            self._send(200, self.server.blobs[path.rpartition("/")[2]], "application/octet-stream")
        else:
            self._send(404, b'{"errors": [{"code": "NAME_UNKNOWN"}]}', "application/json")

    do_GET = do_HEAD = _serve

    def _send(self, code: int, content: bytes, media: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Docker-Content-Digest", _digest(content))
        if code == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="charts"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
