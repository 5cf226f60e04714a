# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image of one program, busybox, under the names given: image.py OUT.tar NAME… It sleeps, and holds its GPU."""
from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

BUSYBOX = Path("/usr/bin/busybox")
COMMAND = ["/bin/busybox", "sh", "-c", "[ ! -e /dev/nvidia0 ] || exec 3</dev/nvidia0; exec /bin/busybox sleep 1000000"]


def add(archive: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    archive.addfile(info, io.BytesIO(data))


def libraries() -> list[str]:
    """What the program is linked with; nothing where it is static."""
    told = subprocess.run(["ldd", str(BUSYBOX)], capture_output=True, text=True, check=False)
    return sorted({word for word in told.stdout.split() if word.startswith("/")})


def layer() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for folder in ("bin", "dev", "etc", "proc", "sys", "tmp"):
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(info)
        add(archive, "bin/busybox", BUSYBOX.read_bytes(), 0o755)
        for path in libraries():
            add(archive, path.lstrip("/"), Path(path).read_bytes(), 0o755)
    return out.getvalue()


def main(target: str, names: list[str]) -> None:
    content = layer()
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "config": {"Entrypoint": COMMAND, "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]},
    }).encode()
    with tarfile.open(target, "w") as archive:
        add(archive, "layer.tar", content)
        add(archive, "config.json", config)
        add(archive, "manifest.json", json.dumps(
            [{"Config": "config.json", "RepoTags": names, "Layers": ["layer.tar"]}]).encode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
