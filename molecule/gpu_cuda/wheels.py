# SPDX-License-Identifier: GPL-3.0-or-later
"""A wheel index like PyTorch's: wheels called torch that say their version, and nothing more.

usage: wheels.py FOLDER BUILD VERSION …      (wheels.py /srv/wheels cu126 2.7.1+cu126)
"""

from __future__ import annotations

import base64
import hashlib
import pathlib
import sys
import zipfile


def write(folder: pathlib.Path, version: str) -> None:
    """Write a wheel called torch that says its version, and the page that lists it."""
    folder.mkdir(parents=True, exist_ok=True)
    name, info = f"torch-{version}-py3-none-any.whl", f"torch-{version}.dist-info"
    files = {"torch.py": f"__version__ = {version!r}\n",
             f"{info}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    rows = [f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')},"
            f"{len(text)}\n" for path, text in files.items()]
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"])
    with zipfile.ZipFile(folder / name, "w") as packed:
        for path, text in files.items():
            packed.writestr(path, text)
    names = sorted(path.name for path in folder.glob("*.whl"))
    (folder / "index.html").write_text("".join(f'<a href="{one.replace("+", "%2B")}">{one}</a>\n' for one in names))


if __name__ == "__main__":
    for one in sys.argv[3:]:
        write(pathlib.Path(sys.argv[1], sys.argv[2], "torch"), one)
