# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host as its facts tell it: a typed view over the shape of docs/design.md, section 3.

Every attribute has three answers (see :mod:`.facts`). Garbage of any kind becomes UNKNOWN, never an exception.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .facts import UNKNOWN, Maybe, Reader, or_none
from .packages import Command, Packages, read_packages
from .runtimes import Containers, read_containers

_ARCHES = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True)
class System:
    """The operating system."""

    id: Maybe[str]
    version: Maybe[str]
    family: Maybe[str]
    arch: Maybe[str]
    codename: Maybe[str]
    virt: Maybe[str]
    init: Maybe[str]
    python: Maybe[str]

    @property
    def name(self) -> str:
        """Return ``debian 12`` for messages."""
        words = [str(word) for word in (self.id, self.version) if isinstance(word, str)]
        return " ".join(words) or "an operating system that could not be read"


@dataclass(frozen=True, slots=True)
class Module:
    """The nvidia module that depmod would load for a kernel."""

    version: Maybe[str]
    flavour: Maybe[str]
    origin: Maybe[str]
    signed: Maybe[bool]
    vermagic_ok: Maybe[bool]
    signer: Maybe[str] = UNKNOWN


@dataclass(frozen=True, slots=True)
class Kernel:
    """An installed kernel."""

    release: str
    image: Maybe[bool]
    initrd: Maybe[bool]
    headers: Maybe[bool]
    compiler: Maybe[str]
    module: Maybe[Module]
    extra_modules: Maybe[tuple[str, ...]]
    image_package: Maybe[str]
    headers_package: Maybe[str]
    nouveau_in_initrd: Maybe[bool]
    arrived: Maybe[Command] = UNKNOWN  # by what dpkg or rpm itself has of it
    initrd_driver: Maybe[tuple[str, str | None]] = UNKNOWN  # version and flavour of the nvidia module in its initrd


@dataclass(frozen=True, slots=True)
class Offer:
    """A kernel that the next full upgrade would install if nothing were held, with the packages that bring it."""

    release: str
    packages: dict[str, str]
    security: Maybe[bool]
    origin: Maybe[str]
    since: Maybe[str]
    cves: Maybe[tuple[str, ...]]
    # SUSE: kernel module packages whose symbols it has, with their versions; Ubuntu: package → version → driver
    modules: Maybe[dict[str, Any]] = UNKNOWN


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The key that DKMS signs with; ``name`` is None while there is no certificate."""

    certificate: str
    private_key: str
    name: Maybe[str]
    mode: Maybe[str]
    enrolled: Maybe[bool]
    requested: Maybe[bool]


@dataclass(frozen=True, slots=True)
class Boot:
    """What the boot loader does, and the trial of a kernel that is under way."""

    loader: Maybe[str]
    menu: Maybe[str]
    default_mode: Maybe[str]
    configured_default: Maybe[str]
    env_writable: Maybe[bool]
    env_reason: Maybe[str]
    next_entry: Maybe[str]
    layout: Maybe[str]
    update_default: Maybe[bool]
    watchdog: Maybe[str]
    kexec: Maybe[dict[str, Any]]
    trial_release: Maybe[str]
    trial_phase: Maybe[str]
    trial_reason: Maybe[str]


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU on the PCI bus."""

    address: str
    id: Maybe[str]
    subsystem: Maybe[str]
    driver: Maybe[str]
    numa_node: Maybe[float]
    width: Maybe[float]
    width_max: Maybe[float]
    speed: Maybe[float]
    speed_max: Maybe[float]
    bar_ok: Maybe[bool]
    mig: Maybe[bool]
    mig_pending: Maybe[bool]
    fabric_state: Maybe[str]
    fabric_status: Maybe[str]
    persistence: Maybe[bool] = UNKNOWN


@dataclass(frozen=True, slots=True)
class Driver:
    """The driver as it runs and lies there."""

    loaded: Maybe[str]
    loaded_flavour: Maybe[str]
    library: Maybe[str]
    smi_status: Maybe[str]
    smi_gpus: Maybe[float]
    origin: Maybe[str]
    runfile: Maybe[dict[str, Any]]
    nouveau_loaded: Maybe[bool]
    nouveau_blocked: Maybe[bool]
    nouveau_in_initramfs: Maybe[bool]
    dkms: Maybe[tuple[tuple[str, str, str, str], ...]]
    hung_tasks: Maybe[tuple[str, ...]]
    fabricmanager: Maybe[str]
    fabricmanager_active: Maybe[bool]
    persistenced_active: Maybe[bool]
    persistenced_command: Maybe[str]
    processes: Maybe[float]
    holders: Maybe[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Host:
    """One host."""

    os: System
    running: Maybe[str]
    running_compiler: Maybe[str]
    default_boot: Maybe[str]
    cmdline: Maybe[str]
    modules: Maybe[tuple[str, ...]]
    kernels: Maybe[tuple[Kernel, ...]]
    offers: Maybe[tuple[Offer, ...]]
    boot: Boot
    storage: Maybe[dict[str, Any]]
    gpus: Maybe[tuple[Gpu, ...]]
    nvswitches: Maybe[tuple[str, ...]]
    secure_boot: Maybe[bool]
    secure_boot_enforced: Maybe[bool]
    mok: Maybe[tuple[str, ...]]
    signing_key: Maybe[SigningKey]
    driver: Driver
    packages: Packages
    containers: Containers
    cuda_toolkits: Maybe[tuple[str, ...]]
    cuda_compat: Maybe[str]
    cuda_nvcc: Maybe[str]
    cuda_default: Maybe[str]
    cuda_environments: Maybe[dict[str, Any]]
    xids: Maybe[tuple[Any, ...]]
    ecc_uncorrected: Maybe[float]
    row_remap_failure: Maybe[bool]
    services: Maybe[dict[str, Any]]
    files: Maybe[dict[str, Any]]
    open_transaction: Any
    stage_left: tuple[str, ...]  # files of a kernel's coming in, without a transaction that they belong to
    own_holds: tuple[str, ...]
    proved: Maybe[tuple[str, ...]]
    held_since: Maybe[str]
    seen: Maybe[dict[str, Any]]  # name of a held package: when a newer version was first seen on offer
    ansible_core: Maybe[str]
    inventory_groups: tuple[str, ...]
    refresh_error: Maybe[str]
    reasons: dict[str, Any]

    @property
    def default_mode(self) -> Maybe[str]:
        """Return what decides over the boot default: saved, index or entry."""
        return self.boot.default_mode

    @property
    def env_writable(self) -> Maybe[bool]:
        """Say whether GRUB can write its environment while it boots."""
        return self.boot.env_writable

    @property
    def loader(self) -> Maybe[str]:
        """Return the boot loader."""
        return self.boot.loader

    def kernel(self, release: object) -> Kernel | None:
        """Return the installed kernel of that release."""
        if isinstance(self.kernels, tuple):
            for kernel in self.kernels:
                if kernel.release == release:
                    return kernel
        return None

    def free_mb(self, path: str) -> float | None:
        """Return the free space of the file system that holds ``path``, or None if nobody could tell."""
        if not isinstance(self.storage, dict):
            return None
        best = max((mount for mount in self.storage if path == mount or path.startswith(mount.rstrip("/") + "/")),
                   key=len, default=None)
        return or_none(Reader(self.storage[best]).number("free_mb")) if best else None

    def why_unknown(self, path: str) -> str:
        """Return why a fact could not be read."""
        reason = self.reasons.get(path)
        return str(reason) if isinstance(reason, str) else "it is not among the facts"


def read(facts: object) -> Host:
    """Return the view of a host; takes anything, raises nothing."""
    reader = Reader(facts)
    return Host(
        os=_system(reader),
        running=reader.text("kernel.running"),
        running_compiler=reader.text("kernel.running_compiler"),
        default_boot=reader.text("kernel.default_boot"),
        cmdline=reader.text("kernel.cmdline"),
        modules=reader.texts("kernel.modules"),
        kernels=_kernels(reader),
        offers=_offers(reader),
        boot=_boot(reader),
        storage=reader.table("storage"),
        gpus=_gpus(reader),
        nvswitches=_nvswitches(reader),
        secure_boot=reader.flag("secure_boot.enabled"),
        secure_boot_enforced=reader.flag("secure_boot.enforced"),
        mok=reader.texts("secure_boot.mok"),
        signing_key=_signing_key(reader),
        driver=_driver(reader),
        packages=read_packages(reader),
        containers=read_containers(reader),
        cuda_toolkits=reader.texts("cuda.toolkits"),
        cuda_compat=reader.text("cuda.compat"),
        cuda_nvcc=reader.text("cuda.nvcc"),
        cuda_default=reader.text("cuda.default"),
        cuda_environments=reader.table("cuda.environments"),
        xids=_list(reader, "health.xids"),
        ecc_uncorrected=reader.number("health.ecc_uncorrected"),
        row_remap_failure=reader.flag("health.row_remap_failure"),
        services=reader.table("services"),
        files=reader.table("files"),
        open_transaction=or_none(reader.get("state.open")),
        stage_left=or_none(reader.texts("state.left")) or (),
        own_holds=_own_holds(reader),
        proved=reader.texts("state.proved_kernels"),
        held_since=reader.text("state.held_since"),
        seen=reader.table("state.seen"),
        ansible_core=reader.text("controller.ansible_core"),
        inventory_groups=or_none(reader.texts("controller.groups")) or (),
        refresh_error=reader.text("packages.refresh_error"),
        reasons=or_none(reader.table("unknown")) or {},
    )


def _signing_key(reader: Reader) -> Maybe[SigningKey]:
    certificate, private_key = reader.text("secure_boot.key.certificate"), reader.text("secure_boot.key.private_key")
    if not isinstance(certificate, str) or not isinstance(private_key, str):
        return UNKNOWN
    return SigningKey(
        certificate=certificate,
        private_key=private_key,
        name=reader.text("secure_boot.key.name"),
        mode=reader.text("secure_boot.key.mode"),
        enrolled=reader.flag("secure_boot.key.enrolled"),
        requested=reader.flag("secure_boot.key.requested"),
    )


def _system(reader: Reader) -> System:
    version = reader.text("os.version")
    number = reader.get("os.version")
    if version is UNKNOWN and isinstance(number, int) and not isinstance(number, bool):
        version = str(number)[:32]
    arch, ident = reader.text("os.arch"), reader.text("os.id")
    return System(
        id=ident.lower() if isinstance(ident, str) else ident,
        version=version,
        family=reader.text("os.family"),
        arch=_ARCHES.get(arch, arch) if isinstance(arch, str) else arch,
        codename=reader.text("os.codename"),
        virt=reader.text("os.virt"),
        init=reader.text("os.init"),
        python=reader.text("os.python"),
    )


def _kernels(reader: Reader) -> Maybe[tuple[Kernel, ...]]:
    rows = reader.rows("kernel.installed")
    if not isinstance(rows, tuple) or reader.odd_rows("kernel.installed"):
        return UNKNOWN if rows is not None else None
    found = []
    for row in rows:
        release = row.text("release")
        if not isinstance(release, str):
            return UNKNOWN
        found.append(Kernel(
            release=release,
            image=row.flag("image"),
            initrd=row.flag("initrd"),
            headers=row.flag("headers"),
            compiler=row.text("compiler"),
            module=_module(row),
            extra_modules=row.texts("extra_modules"),
            image_package=row.text("packages.image"),
            headers_package=row.text("packages.headers"),
            nouveau_in_initrd=row.flag("nouveau_in_initrd"),
            arrived=_arrived(row),
            initrd_driver=_initrd_driver(row),
        ))
    return tuple(found)


def _initrd_driver(row: Reader) -> Maybe[tuple[str, str | None]]:
    version, flavour = row.text("nvidia_in_initrd.version"), row.text("nvidia_in_initrd.flavour")
    if isinstance(version, str):
        return version, flavour if isinstance(flavour, str) else None
    return None if row.get("nvidia_in_initrd") is None else UNKNOWN


def _arrived(row: Reader) -> Maybe[Command]:
    when, record = row.text("arrived.when"), row.text("arrived.record")
    if isinstance(when, str) and isinstance(record, str):
        return Command(when, record, UNKNOWN, ())
    return None if row.get("arrived") is None else UNKNOWN


def _offers(reader: Reader) -> Maybe[tuple[Offer, ...]]:
    rows = reader.rows("kernel.candidates")
    if not isinstance(rows, tuple):
        return rows
    found = []
    for row in rows:
        release, packages = row.text("release"), row.table("packages")
        if not isinstance(release, str) or not isinstance(packages, dict):
            return UNKNOWN
        found.append(Offer(
            release=release,
            packages={name: str(version) for name, version in packages.items() if isinstance(version, (str, int))},
            security=row.flag("security"),
            origin=row.text("origin"),
            since=row.text("since"),
            cves=row.texts("cves"),
            modules=row.table("modules"),
        ))
    return tuple(found)


def _boot(reader: Reader) -> Boot:
    watchdog = reader.get("boot.watchdog")
    if isinstance(watchdog, dict):
        watchdog = or_none(reader.text("boot.watchdog.identity")) or or_none(reader.text("boot.watchdog.device")) or "a"
    return Boot(
        loader=reader.text("boot.loader"),
        menu=reader.text("boot.menu"),
        default_mode=reader.text("boot.default_mode"),
        configured_default=reader.text("boot.configured_default"),
        env_writable=reader.flag("boot.env_writable"),
        env_reason=reader.text("boot.env_reason"),
        next_entry=reader.text("boot.next_entry"),
        layout=reader.text("boot.boot_layout"),
        update_default=reader.flag("boot.update_default"),
        watchdog=watchdog if watchdog is None or isinstance(watchdog, str) else UNKNOWN,
        kexec=reader.table("boot.kexec"),
        trial_release=reader.text("boot.trial.release"),
        trial_phase=reader.text("boot.trial.phase"),
        trial_reason=reader.text("boot.trial.reason"),
    )


def _module(row: Reader) -> Maybe[Module]:
    table = row.table("nvidia")
    if not isinstance(table, dict):
        return table
    here = Reader(table)
    return Module(here.text("version"), here.text("flavour"), here.text("origin"), here.flag("signed"),
                  here.flag("vermagic_ok"), here.text("signer"))


def _gpus(reader: Reader) -> Maybe[tuple[Gpu, ...]]:
    rows = reader.rows("gpus")
    if not isinstance(rows, tuple) or reader.odd_rows("gpus"):
        return UNKNOWN if rows is not None else None
    return tuple(
        Gpu(
            address=or_none(row.text("address")) or f"#{index}",
            id=_pci(row.text("id")),
            subsystem=_pci(row.text("subsystem")),
            driver=row.text("driver"),
            numa_node=row.number("numa_node"),
            width=row.number("link.width"),
            width_max=row.number("link.width_max"),
            speed=row.number("link.speed"),
            speed_max=row.number("link.speed_max"),
            bar_ok=row.flag("bar_ok"),
            mig=row.flag("mig.mode"),
            mig_pending=row.flag("mig.pending"),
            fabric_state=row.text("fabric.state"),
            fabric_status=row.text("fabric.status"),
            persistence=row.flag("persistence"),
        )
        for index, row in enumerate(rows)
    )


def _pci(value: Maybe[str]) -> Maybe[str]:
    return value.lower() if isinstance(value, str) else value


def _nvswitches(reader: Reader) -> Maybe[tuple[str, ...]]:
    rows = reader.rows("nvswitches")
    if not isinstance(rows, tuple):
        return rows
    return tuple(str(or_none(row.text("id")) or "").lower() for row in rows)


def _driver(reader: Reader) -> Driver:
    hung = _list(reader, "driver.hung_tasks")
    return Driver(
        loaded=reader.text("driver.loaded.version"),
        loaded_flavour=reader.text("driver.loaded.flavour"),
        library=reader.text("driver.library"),
        smi_status=reader.text("driver.smi.status"),
        smi_gpus=reader.number("driver.smi.gpus"),
        origin=reader.text("driver.origin"),
        runfile=reader.table("driver.runfile"),
        nouveau_loaded=reader.flag("driver.nouveau.loaded"),
        nouveau_blocked=reader.flag("driver.nouveau.blocked"),
        nouveau_in_initramfs=reader.flag("driver.nouveau.in_initramfs"),
        dkms=_dkms(reader),
        hung_tasks=tuple(_task(task) for task in hung) if isinstance(hung, tuple) else hung,
        fabricmanager=reader.text("driver.fabricmanager.version"),
        fabricmanager_active=reader.flag("driver.fabricmanager.active"),
        persistenced_active=reader.flag("driver.persistenced.active"),
        persistenced_command=reader.text("driver.persistenced.command"),
        processes=reader.number("driver.processes"),
        holders=reader.texts("driver.holders"),
    )


def _dkms(reader: Reader) -> Maybe[tuple[tuple[str, str, str, str], ...]]:
    rows = reader.rows("driver.dkms")
    if not isinstance(rows, tuple):
        return rows

    def word(row: Reader, key: str) -> str:
        return or_none(row.text(key)) or ""

    return tuple((word(row, "name"), word(row, "version"), word(row, "kernel"), word(row, "state")) for row in rows)


def _task(task: Any) -> str:
    here = Reader(task)
    words = [str(word) for word in (or_none(here.get("pid")), or_none(here.text("command"))) if word is not None]
    return " ".join(words) or (task if isinstance(task, str) else "a process")


def _list(reader: Reader, path: str) -> Maybe[tuple[Any, ...]]:
    value = reader.get(path)
    if value is None:
        return None
    return tuple(value) if isinstance(value, (list, tuple)) else UNKNOWN


def _own_holds(reader: Reader) -> tuple[str, ...]:
    """Return the names that we hold: words, or mappings with a package."""
    names: list[str] = []
    holds = reader.get("state.holds")
    for one in holds if isinstance(holds, (list, tuple)) else ():
        name = one if isinstance(one, str) else or_none(Reader(one).text("package"))
        names += [name] if isinstance(name, str) else []
    return tuple(names)
