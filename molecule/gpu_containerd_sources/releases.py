#!/usr/bin/env python
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins of what Docker and the containerd project publish, with Debian's real programs in them.

In .cache/containerd/releases lie docker, a signed apt repository with containerd.io 1.7.24 (its configuration switches
CRI off, as Docker's does; runc is in it), and archive, containerd 2.1.9's tar.gz and runc. releases.json says what a
host has to know of both.
"""
from __future__ import annotations

import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/unit/plugin_utils/containerd"))
import containerds

OUT = ROOT / ".cache/containerd/releases"
HERE = "/srv/releases"
CONFIG = """#   Copyright 2018-2022 Docker Inc.

disabled_plugins = ["cri"]

#root = "/var/lib/containerd"
#state = "/run/containerd"

#[grpc]
#  address = "/run/containerd/containerd.sock"
"""
CONTROL = """Package: containerd.io
Version: 1.7.24-1
Architecture: amd64
Section: devel
Priority: optional
Maintainer: Lab stand-in <lab@localhost>
Provides: containerd, runc
Conflicts: containerd, runc
Replaces: containerd, runc
Depends: libc6, libseccomp2
Description: An open and reliable container runtime
 Stand-in of the lab: the real name and version, Debian's programs.
"""
POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ]; then deb-systemd-helper enable containerd.service >/dev/null || true; fi
"""


def run(*command: str, **more: object) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout  # type: ignore[call-overload]


def program(line: str) -> pathlib.Path:
    path, reason = containerds.found(line)
    if path is None:
        sys.exit(f"containerd {line} could not be fetched from Debian's archive: {reason}")
    return pathlib.Path(path)


def runc(line: str) -> pathlib.Path:
    """runc of the suite that this line of containerd is from."""
    root = containerds.CACHE / f"apt-{containerds.SUITES[line]}"
    if not any(root.glob("runc_*.deb")):
        options = [f"-oDir::Etc::sourcelist={root}/etc/sources.list", "-oDir::Etc::sourceparts=/dev/null",
                   f"-oDir::State::lists={root}/lists", f"-oDir::Cache={root}/cache", "-oDir::State::status=/dev/null",
                   "-oAPT::Sandbox::User=root"]
        run("apt-get", *options, "-qq", "download", "runc", cwd=root)
    run("dpkg-deb", "-x", str(next(root.glob("runc_*.deb"))), str(root / "root"))
    return root / "root/usr/sbin/runc"


def docker(folder: pathlib.Path) -> dict[str, object]:
    """The repository, and what gpu_containerd_repository says of it."""
    folder.mkdir(parents=True)
    source = program("1.7").parent
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch) / "root"
        for name in ("usr/bin", "etc/containerd", "lib/systemd/system", "DEBIAN"):
            (root / name).mkdir(parents=True)
        root.chmod(0o755)
        for name in ("containerd", "containerd-shim-runc-v2", "ctr"):
            shutil.copy(source / name, root / "usr/bin")
        old = pathlib.Path(shutil.which("runc") or runc("1.7"))
        shutil.copy(old, root / "usr/bin/runc")
        unit = (source.parents[1] / "usr/lib/systemd/system/containerd.service")
        unit = unit if unit.exists() else source.parents[1] / "lib/systemd/system/containerd.service"
        shutil.copy(unit, root / "lib/systemd/system")
        (root / "etc/containerd/config.toml").write_text(CONFIG)
        (root / "DEBIAN/control").write_text(CONTROL)
        (root / "DEBIAN/conffiles").write_text("/etc/containerd/config.toml\n")
        (root / "DEBIAN/postinst").write_text(POSTINST)
        (root / "DEBIAN/postinst").chmod(0o755)
        package = folder / "containerd.io_1.7.24-1_amd64.deb"
        run("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(root), str(package))
        home = pathlib.Path(scratch) / "gnupg"
        home.mkdir(mode=0o700)
        gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet"]
        run(*gpg, "--passphrase", "", "--quick-generate-key", "Lab stand-in of Docker", "ed25519", "sign", "never")
        found = re.search(r"^fpr:+([0-9A-F]{40}):", run(*gpg, "--with-colons", "--list-keys"), re.MULTILINE)
        assert found is not None
        (folder / "key.asc").write_text(run(*gpg, "--armor", "--export"))
        (folder / "Packages").write_text(run("apt-ftparchive", "packages", ".", cwd=folder))
        (folder / "Release").write_text(run("apt-ftparchive", "release", ".", cwd=folder))
        run(*gpg, "--clear-sign", "--armor", "--output", str(folder / "InRelease"), str(folder / "Release"))
        run("gpgconf", "--homedir", str(home), "--kill", "all")
    return {"url": f"file:{HERE}/docker", "suite": "/", "components": [], "fingerprint": found[1],
            "key_url": f"file://{HERE}/docker/key.asc"}


def archive(folder: pathlib.Path) -> dict[str, dict[str, str]]:
    """The release files, and what gpu_containerd_archive says of them."""
    folder.mkdir(parents=True)
    source = program("2.1").parent
    target = folder / "containerd-2.1.9-linux-amd64.tar.gz"
    with tarfile.open(target, "w:gz", compresslevel=1) as tar:
        for name in ("containerd", "containerd-shim-runc-v2", "ctr"):
            tar.add(source / name, arcname=f"bin/{name}")
    shutil.copy(runc("2.1"), folder / "runc.amd64")
    version = run("dpkg-deb", "-f", str(next((containerds.CACHE / "apt-forky").glob("runc_*.deb"))), "Version")
    return {"containerd": _part(target, "2.1.9"), "runc": _part(folder / "runc.amd64", re.split(r"[+~-]", version)[0])}


def _part(path: pathlib.Path, version: str) -> dict[str, str]:
    return {"version": version, "url": f"file://{HERE}/archive/{path.name}",
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def main() -> None:
    """Make all of it unless it is there."""
    stamp = OUT / "releases.json"
    digest = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    if stamp.exists() and json.loads(stamp.read_text())["digest"] == digest:
        return
    shutil.rmtree(OUT, ignore_errors=True)
    made = {"digest": digest, "docker": docker(OUT / "docker"), "archive": archive(OUT / "archive")}
    stamp.write_text(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
