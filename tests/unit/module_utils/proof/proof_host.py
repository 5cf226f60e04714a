# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A made-up Debian host for proofs: a root tree, and a runner that plays apt, dpkg-deb, dkms, modinfo and the compiler.

Module files of this host are text: what modinfo prints of them.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.prove import Prover, Wish
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result

KERNEL = "6.1.0-50-amd64"
NAME, VERSION, SOURCE = "nvidia-current", "535.261.03", {"nvidia-kernel-dkms": "535.261.03-1"}
PARTS = ("nvidia", "nvidia-modeset", "nvidia-drm", "nvidia-uvm", "nvidia-peermem")
DKMS_CONF = (
    'PACKAGE_NAME="nvidia-current"\nPACKAGE_VERSION="535.261.03"\nMAKE[0]="make modules KERNEL_UNAME=${kernelver}"\n'
    + "".join(
        f'BUILT_MODULE_NAME[{i}]="{part}"\nDEST_MODULE_NAME[{i}]="{part.replace("nvidia", "$PACKAGE_NAME", 1)}"\n'
        f'DEST_MODULE_LOCATION[{i}]="/updates/dkms"\n'
        for i, part in enumerate(PARTS)
    )
)


def modinfo_text(name: str, kernel: str, version: str = VERSION, licence: str | None = None) -> str:
    licence = licence or ("NVIDIA" if name == "nvidia" else "Dual MIT/GPL")
    head = f"name: {name}\nversion: {version}\nlicense: {licence}\n"
    return f"{head}srcversion: A1\nvermagic: {kernel} SMP preempt mod_unload \n"


class Host:
    """The knobs of a test, and the record of every command that ran."""

    def __init__(self, tmp: pathlib.Path) -> None:
        self.root = tmp / "root"
        self.scratch = tmp / "scratch"
        self.cache = tmp / "cache"
        for directory in (self.root / "etc", self.scratch):
            directory.mkdir(parents=True)
        (self.root / "etc/os-release").write_text('ID=debian\nVERSION_ID="12"\n')
        self.calls: list[list[str]] = []
        self.offers: dict[str, tuple[str, str]] = {
            "nvidia-kernel-dkms": ("535.261.03-1", ""),
            f"linux-headers-{KERNEL}": (
                "6.1.176-1",
                "linux-headers-6.1.0-50-common (= 6.1.176-1), linux-kbuild-6.1, linux-compiler-gcc-12-x86",
            ),
            "linux-headers-6.1.0-50-common": ("6.1.176-1", ""),
            "linux-kbuild-6.1": ("6.1.192-3", "libc6"),
        }
        self.relabelled = ""
        self.source_in = "nvidia-kernel-dkms"
        self.installed: dict[str, str] = {}
        self.dkms_status = ""
        self.compiler: str | None = "gcc-12 (Debian 12.2.0-14) 12.2.0\n"
        self.build_result = Result(rc=0)
        self.install_result = Result(rc=0)
        self.build_log = "CC nvidia.o\n"
        self.built_version, self.built_licence, self.built_kernel = VERSION, "", ""
        self.missing: tuple[str, ...] = ()
        self.during_build: Callable[[], None] = lambda: None
        self.environment: Mapping[str, str] = {}

    def headers(self, kernel: str = KERNEL) -> pathlib.Path:
        """Install headers for ``kernel``."""
        build = self.root / "lib/modules" / kernel / "build"
        (build / "include/config").mkdir(parents=True)
        (build / "include/config/auto.conf").write_text('CONFIG_CC_VERSION_TEXT="gcc-12 (Debian 12.2.0-14) 12.2.0"\n')
        (build / "Module.symvers").write_text("0x1 a vmlinux\n")
        self.installed[f"linux-headers-{kernel}"] = "6.1.176-1"
        return build

    def wish(self, **changes: Any) -> Wish:
        given: dict[str, Any] = {
            "sources": SOURCE,
            "dkms_name": NAME,
            "version": VERSION,
            "flavour": "proprietary",
            "kernels": (KERNEL,),
            "cache_dir": str(self.cache),
            "scratch_dir": str(self.scratch),
            "lock_timeout": 0.2,
            "timeout": 10,
        }
        return Wish(**{**given, **changes})

    def prover(self, **changes: Any) -> Prover:
        free = changes.pop("free", lambda _directory: 9000)
        return Prover(self.wish(**changes), self.run, root=str(self.root), free=free)

    @property
    def builds(self) -> int:
        return sum(1 for call in self.calls if call[:1] == ["nice"] and call[3:5] == ["dkms", "build"])

    def tree(self) -> dict[str, bytes]:
        """Every file of the root tree but our own state, to see that nothing was touched."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file() and "baremetal-nvidia/" not in str(path)
        }

    # the programs

    def run(
        self,
        argv: Sequence[str],
        timeout: float = 10,
        env: Mapping[str, str] | None = None,
        input: str | None = None,
        cwd: str = "/",
        **_more: Any,
    ) -> Result:
        call = list(argv)
        self.calls.append(call)
        if call[:1] == ["nice"] and call[3:5] == ["dkms", "build"]:
            return self._build(call, env or {})
        play: Callable[[list[str], str], Result] = getattr(self, "_" + call[0].replace("-", "_"), self._unknown)
        return self._compiler(call) if call[0].startswith("gcc") else play(call, cwd)

    def _unknown(self, call: list[str], _cwd: str) -> Result:
        raise AssertionError(f"unexpected command {call}")

    def _compiler(self, _call: list[str]) -> Result:
        return Result(rc=127) if self.compiler is None else Result(rc=0, out=self.compiler)

    def _dpkg_query(self, call: list[str], _cwd: str) -> Result:
        version = self.installed.get(call[-1])
        return Result(rc=0, out=f"ii |{version}\n") if version else Result(rc=1)

    def _apt_cache(self, call: list[str], _cwd: str) -> Result:
        name, _sign, version = call[2].partition("=")
        if name not in self.offers or (version and version != self.offers[name][0]):
            return Result(rc=0, out=f"{name}:\n  Candidate: (none)\n") if call[1] == "policy" else Result(rc=100)
        if call[1] == "policy":
            return Result(rc=0, out=f"{name}:\n  Installed: (none)\n  Candidate: {self.offers[name][0]}\n")
        return Result(rc=0, out=f"Package: {name}\nVersion: {self.offers[name][0]}\nDepends: {self.offers[name][1]}\n")

    def _apt_get(self, call: list[str], cwd: str) -> Result:
        assert call[-1] and "download" in call, call
        for spec in call[call.index("download") + 1 :]:
            name, _sign, version = spec.partition("=")
            if self.offers.get(name, ("", ""))[0] != version:
                return Result(rc=100, err=f"E: Version '{version}' for '{name}' was not found\n")
            pathlib.Path(cwd, f"{name}_{version}_amd64.deb").write_text(name)
        return Result(rc=0)

    def _dpkg_deb(self, call: list[str], _cwd: str) -> Result:
        name, into = pathlib.Path(call[2]).read_text(), pathlib.Path(call[3])
        if name.startswith("linux-headers") and name.endswith("amd64"):
            build = into / "usr/src" / name
            (build / "include").mkdir(parents=True)
            (build / ".config").write_text('CONFIG_CC_VERSION_TEXT="gcc-12 (Debian 12.2.0-14) 12.2.0"\n')
            (build / "Makefile").write_text("include /usr/src/linux-headers-6.1.0-50-common/Makefile\n")
            (build / "Module.symvers").write_text("0x1 a vmlinux\n")
        elif name == self.source_in:
            source = into / f"usr/src/{NAME}-{VERSION}"
            source.mkdir(parents=True)
            (source / "dkms.conf").write_text(DKMS_CONF)
        return Result(rc=0)

    def _dkms(self, call: list[str], _cwd: str) -> Result:
        if call[1] == "install":
            if self.install_result.rc == 0:
                self.install(call[call.index("-k") + 1])
            return self.install_result
        return Result(rc=0, out=self.dkms_status if call[1] == "status" else "dkms-3.0.10\n")

    def _restorecon(self, _call: list[str], _cwd: str) -> Result:
        return Result(rc=0, out=self.relabelled)

    def _bash(self, call: list[str], _cwd: str) -> Result:
        from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run

        return run(call)

    def _modinfo(self, call: list[str], _cwd: str) -> Result:
        return Result(rc=0, out=pathlib.Path(call[1]).read_text(errors="replace"))

    def _openssl(self, call: list[str], _cwd: str) -> Result:
        from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run

        return run(call, timeout=120)

    def _build(self, call: list[str], env: Mapping[str, str]) -> Result:
        self.environment = env
        value = {flag: call[call.index(flag) + 1] for flag in ("--dkmstree", "--sourcetree", "-m", "-v", "-k", "-a")}
        assert os.path.isfile(os.path.join(value["--sourcetree"], f"{value['-m']}-{value['-v']}", "dkms.conf"))
        top = pathlib.Path(value["--dkmstree"], value["-m"], value["-v"])
        self.during_build()
        (top / "build").mkdir(parents=True)
        (top / "build/make.log").write_text(self.build_log)
        if self.build_result.rc == 0:
            out = top / value["-k"] / value["-a"] / "module"
            out.mkdir(parents=True)
            for part in PARTS:
                if part in self.missing:
                    continue
                licence = self.built_licence if part == "nvidia" else ""
                text = modinfo_text(part, self.built_kernel or value["-k"], self.built_version, licence or None)
                (out / f"{part.replace('nvidia', value['-m'], 1)}.ko").write_text(text)
        return self.build_result

    def install(self, kernel: str = KERNEL, **changes: Any) -> None:
        """What the package transaction leaves: source, DKMS state and module files."""
        source = self.root / f"usr/src/{NAME}-{VERSION}"
        source.mkdir(parents=True, exist_ok=True)
        (source / "dkms.conf").write_text(DKMS_CONF)
        self.installed.update(SOURCE)
        self.dkms_status += f"{NAME}/{VERSION}, {kernel}, x86_64: installed\n"
        updates = self.root / "lib/modules" / kernel / "updates/dkms"
        updates.mkdir(parents=True)
        for part in PARTS:
            (updates / f"{part.replace('nvidia', NAME, 1)}.ko").write_text(
                modinfo_text(part, changes.get("for_kernel", kernel))
            )
