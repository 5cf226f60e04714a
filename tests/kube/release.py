# SPDX-License-Identifier: GPL-3.0-or-later
"""Helm's record of a release (helm.sh/helm/v3 pkg/storage/driver/util.go): gzip and base64 around JSON, in a Secret."""

from __future__ import annotations

import base64
import gzip
import json


def with_status(data: str, status: str, revision: int) -> str:
    """Return the record of a Secret's data with another status and revision."""
    record = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(data))))
    record["info"]["status"] = status
    record["version"] = revision
    return base64.b64encode(base64.b64encode(gzip.compress(json.dumps(record).encode()))).decode()
