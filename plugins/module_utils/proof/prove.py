# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof in order: look what is proved already, build the rest in scratch, check, keep, record, publish.

All kernels are proved before anything is published: a driver that fits one of two bootable kernels fits neither.
"""

from __future__ import annotations

import glob
import os
import platform
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable

from .. import atomic
from ..mok.signature import Signer
from ..packages import detect
from ..state import DIRECTORY, Store, stamp
from . import bundle, dkms, labels, modinfo, publish, scratch
from . import headers as kernel_headers
from .backends import backend
from .cache import Cache
from .errors import ProofError
from .files import Files
from .shape import Shape, distribution

Runner = Callable[..., Any]

INSTALLED, PUBLISHED, CACHED, BUILT, NEEDS_BUILD = "installed", "published", "cached", "built", "needs_build"
CACHE_WAIT_SHARE = 2  # another host may be building the same shape: wait this many build timeouts for it


@dataclass(frozen=True)
class Wish:
    """What is to be proved. ``sources``: the packages that hold the DKMS source, at exact versions."""

    sources: Mapping[str, str]
    dkms_name: str
    version: str
    flavour: str
    kernels: tuple[str, ...]
    cache_dir: str | None = "/var/cache/baremetal-nvidia"
    scratch_dir: str = "/var/tmp"
    timeout: float = 3600
    lock_timeout: float = 300
    min_free_mb: int = 2500
    jobs: int | None = None
    niceness: int = 10
    files: Mapping[str, str | None] = field(default_factory=dict)  # package files instead of repositories
    certificate: str | None = None  # Secure Boot: that of DKMS' key, with which installed modules must be signed
    private_key: str | None = None


@dataclass
class Outcome:
    """What became of one kernel. ``how``: see the constants above; ``error``: why there is no proof."""

    kernel: str
    how: str = NEEDS_BUILD
    headers: str | None = None
    headers_installed: bool = False
    compiler: str | None = None
    shape: str | None = None
    seconds: float | None = None
    tarball: str | None = None  # where the build is kept
    error: str | None = None
    log: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass
class Report:
    """What a call did. ``changed``: the host differs from before (or would, when only looked at)."""

    kernels: list[Outcome]
    changed: bool = False
    removed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[Outcome]:
        return [item for item in self.kernels if item.error]


class Prover:
    """Proves one wish on one host. ``beat`` is called between steps: it renews the lease."""

    def __init__(
        self,
        wish: Wish,
        run: Runner,
        root: str = "/",
        store: Store | None = None,
        beat: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
        free: Callable[[str], int] = scratch.free_mb,
    ) -> None:
        dkms.safe_word(wish.dkms_name, "dkms_name")
        dkms.safe_word(wish.version, "version")
        for release in wish.kernels:
            dkms.safe_word(release, "kernel release")
        self.wish, self.run, self.root, self.beat, self.clock, self.free = wish, run, root, beat, clock, free
        self.store = store or Store(root)
        self.apt = backend(run, root)
        if wish.files:
            self.apt = Files(self.apt, wish.files, run, detect.detect(root) or "apt")
        self.cache = Cache(wish.cache_dir) if wish.cache_dir else None
        self.arch = platform.machine()
        self._source_tree: str | None = None

    # looking

    def place(self, release: str) -> publish.Place:
        return publish.Place(self.root, self.wish.dkms_name, self.wish.version, release)

    def shape(self, found: kernel_headers.Headers) -> tuple[Shape, str | None]:
        """The shape of a build against ``found``, and the compiler's version (None: it is not installed)."""
        version = kernel_headers.compiler_version(found.compiler, self.run)
        text = atomic.read_text(os.path.join(self.root, "etc/os-release")) or ""
        headers_id = found.version if found.version != "local" else f"local-{publish.symvers_of(found.build)}"
        wish = self.wish
        return Shape(
            distribution(text),
            self.arch,
            found.release,
            headers_id,
            f"{found.compiler} {version or 'missing'}",
            wish.version,
            wish.flavour,
            wish.dkms_name,
            dict(wish.sources),
        ), version

    def installed(self, release: str) -> bool:
        """Whether DKMS has installed exactly this source for ``release`` and the files are right."""
        wish = self.wish
        if any(self.apt.installed(name) != version for name, version in wish.sources.items()):
            return False
        if dkms.status(wish.dkms_name, wish.version, self.run).get(release) != "installed":
            return False
        try:
            return not self.installed_problems(release)
        except ProofError:
            return False

    def installed_problems(self, release: str) -> list[str]:
        """What is wrong with the module files installed for ``release``. Raises ProofError when they cannot be read."""
        wish = self.wish
        expected, paths = self._installed_files(release)
        modules = [modinfo.read(path, self.run) for path in paths]
        wrong = modinfo.problems(
            modules, expected=expected, version=wish.version, flavour=wish.flavour, release=release
        )
        return wrong or self._unsigned(paths)

    def _installed_files(self, release: str) -> tuple[dict[str, str], list[str]]:
        """What dkms.conf names (file stem → module), and the files of it that are installed for ``release``."""
        wish = self.wish
        conf = os.path.join(self.root, "usr/src", f"{wish.dkms_name}-{wish.version}", "dkms.conf")
        expected = {item.installed_as: item.name for item in dkms.read_conf(conf, release, self.arch, self.run)}
        return expected, [
            path
            for stem in expected
            for folder in ("updates", "extra")  # Debian's place for DKMS, and Red Hat's
            for path in glob.glob(
                os.path.join(
                    glob.escape(os.path.join(self.root, "lib/modules", release)), folder, "**", f"{stem}.ko*"
                ),
                recursive=True,
            )
            if modinfo.stem_of(path) == stem
        ]

    def _unsigned(self, paths: list[str]) -> list[str]:
        """The installed modules that a kernel with Secure Boot would refuse; nothing where it does not insist."""
        if self.wish.certificate is None:
            return []
        return Signer(self.wish.certificate, self.run, root=self.root).problems(paths)

    def _sign(self, release: str) -> bool:
        """Sign what DKMS left unsigned (it has no sign-file, or built before there was a key); whether it did.

        The copy in DKMS' own tree first, so that it does not take the installed one for a stranger.
        """
        wish = self.wish
        if wish.certificate is None or wish.private_key is None:
            return False
        _expected, paths = self._installed_files(release)
        signer = Signer(wish.certificate, self.run, wish.private_key, self.root)
        tree = os.path.join(self.root, "var/lib/dkms", wish.dkms_name, wish.version, release, self.arch, "module")
        lacking = [path for path in paths if signer.problems([path])]
        for path in lacking:
            own = os.path.join(tree, os.path.basename(path))
            if os.path.isfile(own):
                signer.sign(own, release)
            signer.sign(path, release)
        return bool(lacking)

    def look(self, release: str) -> tuple[Outcome, Shape | None, kernel_headers.Headers | None]:
        """How ``release`` stands, changing nothing. A missing header package or compiler is in ``error``."""
        outcome = Outcome(release)
        if self.installed(release):
            outcome.how = INSTALLED
            return outcome, None, None
        try:
            found = kernel_headers.find(release, self.apt, self.root)
            shape, compiler = self.shape(found)
            outcome.headers, outcome.headers_installed = f"{found.package} {found.version}", found.installed
            outcome.compiler, outcome.shape = shape.compiler, shape.digest
            if compiler is None:
                raise ProofError(
                    f"kernel {release} was built with {found.compiler}, which is not installed: install the package "
                    f"{found.compiler}",
                    release,
                )
            if self._published(release, shape):
                outcome.how = PUBLISHED
            elif self.cache is not None and self.cache.find(shape):
                outcome.how = CACHED
        except ProofError as exc:
            outcome.error, outcome.log = str(exc), exc.log
            return outcome, None, None
        return outcome, shape, found

    def _published(self, release: str, shape: Shape) -> bool:
        place = self.place(release)
        if not publish.published(place):
            return False
        try:
            bundle.load(place.directory, shape, self.run)
        except ProofError:
            return False
        return True

    def check_only(self) -> Report:
        """What a proof would do, kernel by kernel; reads only."""
        outcomes = [self.look(release)[0] for release in self.wish.kernels]
        return Report(outcomes, changed=any(item.how in (CACHED, NEEDS_BUILD) for item in outcomes))

    # doing

    def prove(self) -> Report:
        """Prove every kernel and publish the builds; the report has an ``error`` for each kernel without proof.

        Raises ProofError for what concerns no single kernel: tools, room, the lock.
        """
        if self.run(["dkms", "--version"], timeout=30).rc != 0:
            raise ProofError("dkms is not installed: it is needed to prove a driver's module, before the driver itself")
        lock = os.path.join(self.root, DIRECTORY.lstrip("/"), "proof.lock")
        with scratch.Lock(lock, self.wish.lock_timeout, "another proof on this host"):
            report = Report([])
            report.removed = (
                scratch.remove_left_over(self.wish.scratch_dir)
                + publish.remove_partial(self.root)
                + (self.cache.remove_partial(self.clock() - self.wish.timeout) if self.cache else [])
            )
            report.changed = bool(report.removed)
            with scratch.directory(self.wish.scratch_dir) as place:
                done: list[tuple[Outcome, Shape, str, Mapping[str, Any]]] = []
                for index, release in enumerate(self.wish.kernels):
                    self.beat()
                    outcome, shape, found = self.look(release)
                    report.kernels.append(outcome)
                    if outcome.error or shape is None or found is None or outcome.how == PUBLISHED:
                        continue
                    directory = os.path.join(place, f"bundle-{index}")
                    try:
                        manifest = self._obtain(
                            outcome, shape, found, os.path.join(place, f"k{index}"), directory, report
                        )
                        done.append((outcome, shape, directory, manifest))
                    except ProofError as exc:
                        outcome.how, outcome.error, outcome.log = NEEDS_BUILD, str(exc), exc.log
                if not report.failed:
                    for outcome, _shape, directory, manifest in done:
                        publish.publish(self.place(outcome.kernel), directory, manifest, manifest.get("symvers"))
                        report.changed = True
                    for outcome in report.kernels:
                        report.changed = self._record(outcome) or report.changed
        return report

    def _obtain(
        self, outcome: Outcome, shape: Shape, found: kernel_headers.Headers, work: str, directory: str, report: Report
    ) -> Mapping[str, Any]:
        """A checked bundle in ``directory``, from the cache or built; one host of a shape builds at a time."""
        os.makedirs(directory)
        if self.cache is None:
            return self._build(outcome, shape, found, work, directory)
        os.makedirs(self.cache.directory, mode=0o755, exist_ok=True)
        self.cache.trusted()
        lock = os.path.join(self.cache.directory, f".lock-{shape.digest}")
        with scratch.Lock(
            lock,
            self.wish.timeout * CACHE_WAIT_SHARE,
            f"the build of {shape.dkms_name} {shape.driver} for {shape.kernel} (same cache_dir)",
        ):
            path = self.cache.find(shape)
            if path is not None:
                try:
                    self.cache.open(path, shape, directory)
                    manifest: Mapping[str, Any] = bundle.load(directory, shape, self.run)
                    outcome.how, outcome.seconds, outcome.tarball = CACHED, 0.0, path
                    return manifest
                except ProofError as exc:
                    report.notes.append(f"a stored build was refused and removed, and is built anew: {exc}")
                    self.cache.drop(path)
                    directory_clean(directory)
            manifest = self._build(outcome, shape, found, work, directory)
            outcome.tarball = self.cache.store(directory, shape)
            return manifest

    def _build(
        self, outcome: Outcome, shape: Shape, found: kernel_headers.Headers, work: str, directory: str
    ) -> Mapping[str, Any]:
        wish = self.wish
        scratch.require_room(wish.scratch_dir, wish.min_free_mb, self.free)
        os.makedirs(work)
        sources = self._sources(os.path.dirname(work))
        self.beat()
        if not found.installed:
            found = kernel_headers.fetch(found, self.apt, os.path.join(work, "headers"))
        conf = os.path.join(sources, f"{wish.dkms_name}-{wish.version}", "dkms.conf")
        built = dkms.read_conf(conf, found.release, self.arch, self.run)
        modules, seconds = dkms.build(
            found,
            name=wish.dkms_name,
            version=wish.version,
            arch=self.arch,
            sources=sources,
            scratch=work,
            timeout=wish.timeout,
            run=self.run,
            jobs=wish.jobs,
            niceness=wish.niceness,
        )
        manifest = bundle.create(
            directory,
            modules,
            built,
            shape,
            seconds,
            stamp(self.clock()),
            self.run,
            symvers=publish.symvers_of(found.build),
        )
        outcome.how, outcome.seconds = BUILT, round(seconds, 1)
        directory_clean(work)
        return manifest

    def _sources(self, place: str) -> str:
        """The driver's source, opened once below ``place``; the directory that stands for /usr/src."""
        if self._source_tree is None:
            debs, tree = os.path.join(place, "source-debs"), os.path.join(place, "source")
            os.makedirs(debs)
            os.makedirs(tree)
            for package in self.apt.download(self._with_source(self.wish.sources), debs):
                self.apt.unpack(package, tree)
                os.unlink(package)
            self._source_tree = os.path.join(tree, "usr/src")
        wanted = os.path.join(self._source_tree, f"{self.wish.dkms_name}-{self.wish.version}")
        if not os.path.isfile(os.path.join(wanted, "dkms.conf")):
            there = sorted(os.listdir(self._source_tree)) if os.path.isdir(self._source_tree) else []
            raise ProofError(
                f"{', '.join(f'{name} {version}' for name, version in self.wish.sources.items())} does not hold the "
                f"source {self.wish.dkms_name}-{self.wish.version}; it holds {', '.join(there) or 'none'}"
            )
        return self._source_tree

    def _with_source(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """The packages and what holds the source proper: Ubuntu's nvidia-dkms-* brings dkms.conf alone."""
        found = dict(wanted)
        for name, version in wanted.items():
            offer = self.apt.offer(name, version) if name.startswith("nvidia-dkms") else None
            for other in offer.depends if offer is not None else ():
                if other.startswith("nvidia-kernel-source"):
                    found.setdefault(other, version)
        return found

    def _record(self, outcome: Outcome) -> bool:
        """Write the proof to the state file, unless the same one stands there already."""
        wish = self.wish
        proof: dict[str, Any] = {
            "driver": wish.version,
            "flavour": wish.flavour,
            "dkms_name": wish.dkms_name,
            "sources": dict(wish.sources),
        }
        before = self.store.read()["proved_kernels"].get(outcome.kernel, {})
        if {key: before.get(key) for key in proof} == proof and outcome.how in (INSTALLED, PUBLISHED):
            return False
        proof.update(
            how=outcome.how,
            headers=outcome.headers,
            compiler=outcome.compiler,
            shape=outcome.shape,
            seconds=outcome.seconds,
            at=stamp(self.clock()),
        )
        return self.store.prove(outcome.kernel, proof)

    # afterwards

    def settle(self, check: bool = False) -> Report:
        """After the package transaction: DKMS has installed what was proved, or does it now; then the offer goes.

        Debian's postinst leaves kernels out (in a container, on an upgrade, all but the newest), and a kernel whose
        module is missing brings no transaction of its own. A kernel whose installed modules are not right has an
        ``error`` and its offer stays, for the next try.
        """
        report = Report([])
        for release in self.wish.kernels:
            place = self.place(release)
            offered = publish.published(place) or os.path.isdir(place.directory)
            outcome = Outcome(release, how=INSTALLED)
            report.kernels.append(outcome)
            try:
                state = self._state(release)
                if state != "installed" and publish.published(place):
                    report.changed = True
                    if check:
                        continue
                    self.beat()
                    dkms.install(self.wish.dkms_name, self.wish.version, release, self.wish.timeout, self.run)
                    state = self._state(release)
                if state == "installed" and not check and self._sign(release):
                    report.changed = True
                if state == "installed" and not check:
                    report.changed |= labels.restore(self._installed_files(release)[1], self.run, self.root)
                wrong = (
                    self.installed_problems(release) if state == "installed" else [f"DKMS says {state}, not installed"]
                )
            except ProofError as exc:
                wrong = [str(exc)]
            if wrong:
                outcome.how, outcome.error = NEEDS_BUILD, f"kernel {release}: {'; '.join(wrong)}"
            elif offered:
                report.changed = True
                if not check:
                    publish.withdraw(place)
        return report

    def _state(self, release: str) -> str:
        return dkms.status(self.wish.dkms_name, self.wish.version, self.run).get(release, "not built")


def directory_clean(path: str) -> None:
    """Empty a directory of our own scratch tree."""
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path, exist_ok=True)
