# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a host counts when a kernel comes in: what would have to be the same again after it was taken back.

Files of /boot are known by their content, those of a kernel by their names; GRUB's two files, which are written in
place, are kept as copies, the rest of /boot as hard links, since package scripts replace those by renaming.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Collection, Mapping
from typing import Any

from .. import atomic
from ..boot import settle
from ..checksum import sha256_of
from ..managed_files import STAGE_JOURNAL, STAGE_KEPT, STAGE_PACKAGES, STAGE_PATHS
from ..proof.publish import MARK
from ..state import DIRECTORY
from .errors import StageError

PATH, KEPT = STAGE_JOURNAL, STAGE_KEPT
_LINKS = ("/vmlinuz", "/vmlinuz.old", "/initrd.img", "/initrd.img.old", "/boot/vmlinuz", "/boot/vmlinuz.old",
          "/boot/initrd.img", "/boot/initrd.img.old")
_WRITTEN_IN_PLACE = ("grub.cfg", "grubenv")
_DKMS = "/var/lib/dkms"
_OFFERS = "/etc/dkms"
Snapshot = dict[str, Any]


def at(root: str, path: str) -> str:
    """A path of the host below ``root``."""
    return os.path.join(root, path.lstrip("/"))


def boot_files(root: str) -> dict[str, dict[str, Any]]:
    """Every file below /boot that decides what boots, by path: digest and mode. Not GRUB's own modules and fonts."""
    found: dict[str, dict[str, Any]] = {}
    top = at(root, "/boot")
    for where, dirs, names in os.walk(top):
        inside = where[len(top):] or "/"
        dirs[:] = [name for name in dirs if not _skipped(os.path.join(inside, name))]
        for name in names:
            full = os.path.join(where, name)
            if os.path.islink(full) or not os.path.isfile(full) or name.startswith(atomic.TMP_PREFIX):
                continue
            found["/boot" + os.path.join(inside, name)] = {
                "sha256": sha256_of(full), "mode": stat.S_IMODE(os.stat(full).st_mode)}
    return found


def _skipped(path: str) -> bool:
    return path in (KEPT[len("/boot"):], "/lost+found") or path.endswith(
        ("/fonts", "/locale", "/i386-pc", "/x86_64-efi", "/arm64-efi", "/themes"))


def links(root: str) -> dict[str, str]:
    """The links to the newest kernel that packages keep, and where they lead."""
    found = {}
    for path in _LINKS:
        with contextlib.suppress(OSError):
            found[path] = os.readlink(at(root, path))
    return found


def module_trees(root: str) -> list[str]:
    """The kernels that have a directory in /lib/modules."""
    with contextlib.suppress(FileNotFoundError):
        return sorted(os.listdir(at(root, "/lib/modules")))
    return []


def dkms_tree(root: str) -> list[str]:
    """DKMS' own tree, as the paths of builds, links and module files."""
    found, top = [], at(root, _DKMS)
    for where, dirs, names in os.walk(top):
        for name in (*names, *(one for one in dirs if os.path.islink(os.path.join(where, one)))):
            if not name.endswith(".log"):
                found.append(os.path.join(where, name)[len(top):])
        dirs[:] = [name for name in dirs if name != "log"]
    return sorted(found)


def offers(root: str) -> list[str]:
    """DKMS' override files of single kernels."""
    with contextlib.suppress(FileNotFoundError):
        return sorted(name for name in os.listdir(at(root, _OFFERS)) if name.endswith(".conf"))
    return []


def files(root: str) -> Snapshot:
    """The parts of a snapshot that are files."""
    return {"boot": boot_files(root), "links": links(root), "modules": module_trees(root), "dkms": dkms_tree(root),
            "offers": offers(root)}


def save(root: str, snapshot: Mapping[str, Any]) -> None:
    """Write a snapshot, for root alone."""
    atomic.write(at(root, PATH), json.dumps(snapshot, indent=1, sort_keys=True) + "\n", mode=0o600, dir_mode=0o700)


def load(root: str) -> Snapshot | None:
    """The snapshot of a transaction that is open, None when there is none. Raises StageError for a damaged one."""
    text = atomic.read_text(at(root, PATH))
    if text is None:
        return None
    try:
        found = json.loads(text)
        return dict(found)
    except (ValueError, TypeError) as exc:
        raise StageError(f"{PATH} cannot be read ({exc}): what a cut-off run changed is not known. Look at the "
                         "packages by hand, then remove that file") from exc


def keep(root: str, boot: Mapping[str, Any]) -> list[str]:
    """Keep the files of /boot under a second name; the paths that could not be kept, for want of room."""
    top = at(root, KEPT)
    shutil.rmtree(top, ignore_errors=True)
    os.makedirs(top, mode=0o700)
    lost = []
    for path in boot:
        target = os.path.join(top, path[len("/boot/"):])
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        try:
            if os.path.basename(path) in _WRITTEN_IN_PLACE:
                shutil.copy2(at(root, path), target)
                atomic.sync_file(target)
            else:
                os.link(at(root, path), target)
        except OSError:  # FAT has no hard links; the copies of its images would not fit
            lost.append(path)
    atomic.sync_dir(top)
    return lost


def restore(root: str, before: Mapping[str, Any], release: str) -> list[str]:
    """Bring /boot, /lib/modules, DKMS' tree and the links to where they were; what was done, as lines.

    Taken away is only what names ``release``: other new files are not ours. Raises StageError for a file that changed
    and was not kept.
    """
    done = _restore_boot(root, before["boot"], release, _removed(before, {"modules": module_trees(root)}))
    for path, target in before["links"].items():
        if links(root).get(path) != target:
            _link(at(root, path), target)
            done.append(f"{path} leads to {target} again")
    for path in set(links(root)) - set(before["links"]):
        os.unlink(at(root, path))
        done.append(f"{path} is gone again")
    if release not in before["modules"] and os.path.isdir(at(root, f"/lib/modules/{release}")):
        shutil.rmtree(at(root, f"/lib/modules/{release}"))
        done.append(f"/lib/modules/{release} is gone")
    return done + _restore_dkms(root, before, release)


def _removed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Kernels that others took out meanwhile (a cut-off run may be days old): nothing of them is brought back."""
    return [release for release in before["modules"] if release not in after["modules"]]


def _of(path: str, releases: Collection[str]) -> bool:
    return any(release in path for release in releases)


def _restore_boot(root: str, before: Mapping[str, Mapping[str, Any]], release: str,
                  removed: Collection[str]) -> list[str]:
    done, missing = [], []
    now = boot_files(root)
    for path in sorted(now):
        if path not in before and release in path:
            atomic.remove(at(root, path))
            done.append(f"{path} is gone")
    for path, was in before.items():
        if now.get(path, {}).get("sha256") == was["sha256"] or (path not in now and _of(path, removed)):
            continue
        kept = os.path.join(at(root, KEPT), path[len("/boot/"):])
        if not os.path.exists(kept) or sha256_of(kept) != was["sha256"]:
            missing.append(path)
            continue
        tmp = os.path.join(os.path.dirname(at(root, path)), atomic.TMP_PREFIX + os.path.basename(path))
        shutil.copy2(kept, tmp)
        os.chmod(tmp, was["mode"])
        settle.swap(tmp, at(root, path), on_host=root == "/")
        done.append(f"{path} is as it was")
    if missing:
        raise StageError(f"{', '.join(missing)} changed and no copy was kept: install the package that brings it again "
                         "before this host is restarted")
    return done


def _link(path: str, target: str) -> None:
    tmp = os.path.join(os.path.dirname(path), atomic.TMP_PREFIX + os.path.basename(path))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(tmp)
    os.symlink(target, tmp)
    os.rename(tmp, path)


def _restore_dkms(root: str, before: Mapping[str, Any], release: str) -> list[str]:
    top, done, known = at(root, _DKMS), [], set(before["dkms"])
    for name in sorted(os.listdir(top)) if os.path.isdir(top) else []:
        home = os.path.join(top, name)
        for entry in sorted(os.listdir(home)) if os.path.isdir(home) else []:
            full = os.path.join(home, entry)
            if os.path.islink(full) and release in entry and full[len(top):] not in known:
                os.unlink(full)
                done.append(f"DKMS has {name} for {release} no more")
            built = os.path.join(full, release)
            had = any(one.startswith(built[len(top):] + "/") for one in known)
            if os.path.isdir(built) and not os.path.islink(full) and not had:
                shutil.rmtree(built)
                done.append(f"the build of {name} {entry} for {release} is gone")
    for name in offers(root):
        # a proof offers its build before anything is written down here: ours goes in any case
        ours = (atomic.read_text(at(root, f"{_OFFERS}/{name}")) or "").startswith(MARK)
        if name.endswith(f"-{release}.conf") and (ours or name not in before["offers"]):
            atomic.remove(at(root, f"{_OFFERS}/{name}"))
            shutil.rmtree(at(root, f"{DIRECTORY}/proved/{name[:-len('.conf')]}"), ignore_errors=True)
            done.append(f"the build that was offered to DKMS as {name} is withdrawn")
    return done


def discard(root: str) -> None:
    """Forget the snapshot: first the journal, then what it kept."""
    atomic.remove(at(root, PATH))
    shutil.rmtree(at(root, KEPT), ignore_errors=True)
    shutil.rmtree(at(root, STAGE_PACKAGES), ignore_errors=True)


def left(root: str) -> list[str]:
    """What lies there of a transaction, whether one is open or a run was cut off before or after it."""
    return [path for path in STAGE_PATHS if os.path.lexists(at(root, path))]


def differences(before: Mapping[str, Any], after: Mapping[str, Any], release: str, own: Collection[str],
                holds: Collection[str]) -> list[str]:
    """What is not as it was, in sentences; of packages those of ``own``, of holds those on names of ``holds``."""
    found, removed = [], _removed(before, after)
    for path in sorted({*before["boot"], *after["boot"]}):
        was, now = before["boot"].get(path), after["boot"].get(path)
        if now is None and _of(path, removed):
            continue
        if was is None and now is not None and release in path:
            found.append(f"{path} is still there")
        elif was is not None and (now is None or now["sha256"] != was["sha256"]):
            found.append(f"{path} is {'gone' if now is None else 'another one'}")
    if before["links"] != after["links"]:
        found.append(f"the links to the kernel are {after['links']}, not {before['links']}")
    if release in after["modules"] and release not in before["modules"]:
        found.append(f"/lib/modules/{release} is still there")
    found += [f"DKMS still has {path}" for path in after["dkms"] if path not in before["dkms"] and release in path]
    found += [f"DKMS lacks {path}" for path in before["dkms"] if path not in after["dkms"] and not _of(path, removed)]
    for name in sorted(own):
        if before["packages"].get(name) != after["packages"].get(name):
            found.append(f"package {name} is {after['packages'].get(name) or 'gone'}, was "
                         f"{before['packages'].get(name) or 'not there'}")
    otherwise = (set(after["held"]) ^ set(before["held"])) & set(holds)
    if otherwise:
        found.append(f"held is {', '.join(sorted(otherwise))} differently")
    return found
