# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with GRUB as a tree of files, and stand-ins for GRUB's programs that work on it."""
from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Sequence

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.settings import SNIPPET_PATH
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import grub as grub_facts
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.grub import ENV_SIGNATURE
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result

OLD, NEW = "6.1.0-47-amd64", "6.1.0-50-amd64"
ENTRY = f"gnulinux-advanced-u>gnulinux-{OLD}-advanced-u"
LINUX = """menuentry '{title}' --class debian --class os $menuentry_id_option '{id}' {{
\tload_video
\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
\techo\t'Loading Linux {release} ...'
\tlinux\t/boot/vmlinuz-{release} root=UUID=u ro {more} quiet
\tinitrd\t/boot/initrd.img-{release}
}}
"""
HEAD = """### BEGIN /etc/grub.d/00_header ###
if [ "${{next_entry}}" ] ; then
   set default="${{next_entry}}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="{default}"
fi
### END /etc/grub.d/00_header ###
"""


def section(name: str, body: str) -> str:
    """What grub-mkconfig makes of one file in /etc/grub.d."""
    return f"\n### BEGIN /etc/grub.d/{name} ###\n{body}### END /etc/grub.d/{name} ###\n"


def menu_entries(releases: Sequence[str]) -> str:
    """Debian's 10_linux."""
    entries = ""
    for release in releases:
        title = f"Debian GNU/Linux, with Linux {release}"
        entries += LINUX.format(title=title, id=f"gnulinux-{release}-advanced-u", release=release, more="")
        entries += LINUX.format(title=f"{title} (recovery mode)", id=f"gnulinux-{release}-recovery-u", release=release,
                                more="single")
    first = LINUX.format(title="Debian GNU/Linux", id="gnulinux-simple-u", release=releases[0], more="")
    return (f"{first}submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-u' {{\n"
            f"{entries}}}\n")


def grub_cfg(default: str, releases: Sequence[str], root: pathlib.Path | None = None) -> str:
    """A menu as Debian's grub-mkconfig writes it, with what the files in /etc/grub.d of the tree add."""
    directory = root / "etc/grub.d" if root else None
    own = {}
    for path in sorted(directory.iterdir()) if directory and directory.is_dir() else ():
        if path.stat().st_mode & 0o100:
            own[path.name] = subprocess.run(["sh", str(path)], capture_output=True, text=True, check=True).stdout
    parts = {"10_linux": menu_entries(releases), "30_uefi-firmware": "", **own}
    return HEAD.format(default=default) + "".join(section(name, parts[name]) for name in sorted(parts))


class Grub:
    """The programs of GRUB over a tree."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.releases = [NEW, OLD]
        self.abstraction, self.file_system = "", "ext2"
        self.overruled: str | None = None    # what a file read after ours sets GRUB_DEFAULT to
        self.grubby: str | None = None
        self.calls: list[list[str]] = []
        self.fail: dict[str, Result] = {}

    def __call__(self, argv: Sequence[str], timeout: float = 10, env: object = None, input: object = None) -> Result:
        self.calls.append(list(argv))
        if argv[0] in self.fail:
            return self.fail[argv[0]]
        if argv[0] == "grubby":
            return Result(0, f"{self.grubby}\n")
        name = argv[0].replace("grub2-", "grub-")
        if name == "grub-probe":
            return Result(0, {"abstraction": self.abstraction, "fs": self.file_system}[argv[1].split("=")[1]] + "\n")
        if name == "grub-script-check":
            return Result(0)
        if name == "grub-mkconfig":
            pathlib.Path(argv[2]).write_text(grub_cfg(self.overruled or self.default(), self.releases, self.root))
            return Result(0)
        assert name == "grub-editenv", argv
        path, verb, *words = argv[1:]
        values = {} if verb == "create" else block(pathlib.Path(path))
        if verb == "set":
            key, value = words[0].split("=", 1)
            values[key] = value
        elif verb == "unset":
            values.pop(words[0], None)
        write_block(pathlib.Path(path), values)
        return Result(0)

    def default(self) -> str:
        """GRUB_DEFAULT as grub-mkconfig finds it."""
        files = [self.root / "etc/default/grub", self.root / SNIPPET_PATH.lstrip("/")]
        values = grub_facts.settings(path.read_text() for path in files if path.exists())
        default = values.get("GRUB_DEFAULT", "0")
        return "${saved_entry}" if default == "saved" else default

    @property
    def env(self) -> dict[str, str]:
        return block(self.root / "boot/grub/grubenv")

    @property
    def cfg(self) -> str:
        return (self.root / "boot/grub/grub.cfg").read_text()


def block(path: pathlib.Path) -> dict[str, str]:
    lines = path.read_text().splitlines()[1:]
    return dict(line.split("=", 1) for line in lines if "=" in line)


def write_block(path: pathlib.Path, values: dict[str, str]) -> None:
    text = ENV_SIGNATURE + "\n" + "".join(f"{k}={v}\n" for k, v in values.items())
    path.write_text(text + "#" * (1024 - len(text)))


def tree(root: pathlib.Path) -> dict[str, object]:
    """Every file and link below ``root``, with its content and mode."""
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(root))] = path.readlink() if hasattr(path, "readlink") else str(path)
        elif path.is_file():
            found[str(path.relative_to(root))] = (path.read_bytes(), path.stat().st_mode)
    return found


def put(root: pathlib.Path, path: str, text: str) -> pathlib.Path:
    """Write a file of the tree."""
    where = root / path.lstrip("/")
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(text)
    return where


def kernels(root: pathlib.Path, *releases: str, initrd: str = "initrd.img-{}") -> None:
    for release in releases:
        put(root, f"/boot/vmlinuz-{release}", "k")
        put(root, f"/boot/{initrd.format(release)}", "i")


def debian(root: pathlib.Path) -> Grub:
    """A Debian host with two kernels and the default of its distribution: the first entry."""
    kernels(root, OLD, NEW)
    put(root, "/boot/grub/grub.cfg", grub_cfg("0", [NEW, OLD]))
    (root / "etc/grub.d").mkdir(parents=True)
    write_block(root / "boot/grub/grubenv", {})
    partition(root)
    put(root, "/proc/sys/kernel/random/boot_id", "boot-1\n")
    return Grub(root)


def partition(root: pathlib.Path, fstype: str = "ext4") -> None:
    """/boot on a plain partition, as /proc and /sys say it."""
    put(root, "/proc/self/mountinfo", f"20 1 8:1 / / rw - {fstype} /dev/sda1 rw\n")
    for link, target in (("sys/dev/block/8:1", "../../devices/pci/block/sda/sda1"),
                         ("sys/class/block/sda1", "../../devices/pci/block/sda/sda1")):
        (root / link).parent.mkdir(parents=True, exist_ok=True)
        (root / link).symlink_to(target)
    put(root, "/sys/devices/pci/block/sda/sda1/partition", "1")


EL_OLD, EL_NEW, MACHINE = "5.14.0-427.el9.x86_64", "5.14.0-503.el9.x86_64", "0a1b2c3d"
EL_HEAD = HEAD + """
### BEGIN /etc/grub.d/10_linux ###
insmod blscfg
blscfg
### END /etc/grub.d/10_linux ###
"""


def bls_text(release: str) -> str:
    return (f"title Rocky Linux ({release}) 9.4\nversion {release}\nlinux /vmlinuz-{release}\n"
            f"initrd /initramfs-{release}.img $tuned_initrd\noptions root=UUID=u ro crashkernel=1G $tuned_params\n"
            "grub_users $grub_users\ngrub_arg --unrestricted\ngrub_class rocky\n")


class El(Grub):
    """The programs on an EL host: a menu of entries that are files."""

    def __init__(self, root: pathlib.Path) -> None:
        super().__init__(root)
        self.file_system = "xfs"

    @property
    def env(self) -> dict[str, str]:
        return block(self.root / "boot/grub2/grubenv")


def el(root: pathlib.Path) -> El:
    """An EL 9 host with two kernels and a rescue entry, whose default moves with every update."""
    kernels(root, EL_OLD, EL_NEW, initrd="initramfs-{}.img")
    put(root, "/boot/grub2/grub.cfg", EL_HEAD.format(default="${saved_entry}"))
    for release in (EL_OLD, EL_NEW):
        put(root, f"/boot/loader/entries/{MACHINE}-{release}.conf", bls_text(release))
    put(root, f"/boot/loader/entries/{MACHINE}-0-rescue.conf",
        f"title Rescue\nversion 0-rescue-{MACHINE}\nlinux /vmlinuz-0-rescue-{MACHINE}\n")
    put(root, "/etc/default/grub", 'GRUB_TIMEOUT=5\nGRUB_DEFAULT=saved\nGRUB_ENABLE_BLSCFG=true\n')
    put(root, "/etc/sysconfig/kernel", "# as anaconda writes it\nUPDATEDEFAULT=yes\nDEFAULTKERNEL=kernel-core\n")
    put(root, "/usr/bin/dracut", "")
    write_block(root / "boot/grub2/grubenv", {"saved_entry": f"{MACHINE}-{EL_NEW}", "boot_success": "0"})
    partition(root, "xfs")
    put(root, "/proc/sys/kernel/random/boot_id", "boot-1\n")
    return El(root)
