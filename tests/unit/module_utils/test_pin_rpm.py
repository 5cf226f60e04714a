# SPDX-License-Identifier: GPL-3.0-or-later
"""Pins with dnf 4, dnf 5 and zypper: the same promises as with apt, kept in files that people write too."""
from __future__ import annotations

import json
import pathlib

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.base import LockHeld
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.books import VersionLockList
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.detect import backend, detect
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.dnf import Dnf
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.zypper import Zypper
from ansible_collections.baremetal.nvidia.plugins.module_utils.pin import Outcome, Pin, PinError, Request
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store
from fake_rpm import FakeRpm

EL = ("kernel", "kernel-core", "kernel-modules", "kernel-devel")
EL_OTHERS = ("kernel-rt", "kernel-uki-virt", "kernel-64k-core", "kernel-64k*")
SUSE = ("kernel-default", "kernel-default-devel")
SUSE_OTHERS = ("kernel-azure", "kernel-rt*")
OLD, NEW = "5.14.0-427.13.1.el9_4", "5.14.0-503.11.1.el9_5"
LIST, TOML, CONF = "etc/dnf/plugins/versionlock.list", "etc/dnf/versionlock.toml", "etc/dnf/dnf.conf"
LOCKS = "etc/zypp/locks"
DROP_IN = "etc/dnf/libdnf5.conf.d/90-baremetal-nvidia.conf"


def el(root: pathlib.Path) -> FakeRpm:
    versions = {name: [OLD] for name in EL}
    return FakeRpm(root, {**versions, "kernel-headers": [NEW], "kernel-tools": [NEW], "bash": ["5.1.8-9.el9"]})


@pytest.fixture(params=["plugin", "excludes", "dnf5", "zypper"])
def host(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> FakeRpm:
    """A host of each kind, with the file in which its holds stand and a person's own lines in it."""
    fake = el(tmp_path)
    if request.param == "plugin":
        fake.dnf4().write(LIST, "# mine\nbash-0:5.1.8-9.el9.*\n!evil\n")
        fake.book = LIST
    elif request.param == "excludes":
        fake.dnf4(plugin=False, conf="[main]\ngpgcheck=1\nexclude=bash,\n  evil\ninstallonly_limit=3\n[other]\nx=1\n")
        fake.book = CONF
    elif request.param == "dnf5":
        fake.dnf5().write(TOML, 'version = "1.0"\n\n[[packages]]\nname = "bash"\ncomment = "mine"\n'
                                '[[packages.conditions]]\nkey = "evr"\ncomparator = "="\nvalue = "5.1.8-9.el9"\n')
        fake.book = TOML
    else:
        fake = FakeRpm(tmp_path, {**{n: ["6.4.0-150600.23.47.2"] for n in SUSE}, "kernel-firmware-all": ["1-1"],
                                  "bash": ["4.4-1"]}).zypper()
        fake.write(LOCKS, "\ntype: package\nversion: > 9\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: vim\n\n"
                          "\ntype: package\nmatch_type: exact\ncase_sensitive: on\nsolvable_name: bash\n\n")
        fake.book = LOCKS
    fake.family, fake.others = (SUSE, SUSE_OTHERS) if request.param == "zypper" else (EL, EL_OTHERS)
    return fake


def pin(host: FakeRpm, check: bool = False, manager: object = None, **asked: object) -> Outcome:
    store = Store(str(host.root), clock=lambda: 1000.0)
    manager = manager or backend(host, str(host.root))
    defaults: dict = {"packages": host.family, "deny": host.others, "why": "test"}
    return Pin(manager, store, str(host.root)).run(Request(**{**defaults, **asked}), check)


def tree(root: pathlib.Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*"))
            if p.is_file() and "var/lib/baremetal-nvidia" not in str(p)}


def held(host: FakeRpm) -> set[str]:
    return {n for n, packages in backend(host, str(host.root)).installed().items() if all(p.held for p in packages)}


def state(host: FakeRpm) -> dict:
    return json.loads(host.read("var/lib/baremetal-nvidia/state.json"))


def test_a_family_is_held_whole_and_a_person_keeps_theirs(host: FakeRpm) -> None:
    outcome = pin(host)
    assert outcome.changed and held(host) == {*host.family, "bash"}
    owners = {row["package"]: row["owner"] for row in outcome.held}
    assert owners == {**dict.fromkeys((*host.family, *host.others), "ours"), "bash": "person"}
    assert {row["how"] for row in outcome.held} == {{LIST: "versionlock", CONF: "exclude", TOML: "versionlock",
                                                     LOCKS: "lock"}[host.book]}


def test_second_run_changes_nothing(host: FakeRpm) -> None:
    pin(host)
    before = tree(host.root)
    outcome = pin(host)
    assert not outcome.changed and not outcome.actions and not outcome.diff and tree(host.root) == before


def test_check_mode_tells_all_and_does_nothing(host: FakeRpm) -> None:
    before = tree(host.root)
    foretold = pin(host, check=True)
    assert tree(host.root) == before and not (host.root / "var/lib/baremetal-nvidia").exists()
    done = pin(host)
    assert foretold.actions == done.actions and foretold.diff == done.diff and foretold.held == done.held
    assert any(part["before_header"] == f"/{host.book}" for part in done.diff)


def test_release_takes_back_what_is_ours_to_the_byte(host: FakeRpm) -> None:
    before = tree(host.root)
    pin(host)
    assert pin(host, present=False, packages=(), deny=()).changed
    after = tree(host.root)
    if host.book == CONF:    # dnf.conf: a person's continued line is untouched too
        assert after == before
    assert {k: v.strip() for k, v in after.items()} == {k: v.strip() for k, v in before.items()}
    assert held(host) == {"bash"} and state(host)["locks"] == {} and state(host)["holds"] == {}
    assert not pin(host, present=False, packages=(), deny=()).changed


def test_half_a_pin_is_refused(host: FakeRpm) -> None:
    before = tree(host.root)
    with pytest.raises(PinError, match=rf"half a pin.*{host.family[1]}"):
        pin(host, packages=(host.family[0],))
    assert tree(host.root) == before


def test_lifted_names_are_free_until_the_next_call(host: FakeRpm) -> None:
    pin(host)
    name = host.family[1]
    lifted = pin(host, lifted=(name, host.others[0]))
    assert f"release {name}" in lifted.actions and held(host) == {*host.family, "bash"} - {name}
    assert pin(host).changed and held(host) == {*host.family, "bash"}


def test_a_failure_puts_everything_back(host: FakeRpm) -> None:
    before = tree(host.root)

    class MarkFails(type(backend(host, str(host.root)))):  # type: ignore[misc]
        def mark(self, manual: object, auto: object) -> None:
            raise HostError("marking broke")

    with pytest.raises(PinError, match=r"marking broke\. Nothing is half pinned"):
        pin(host, manager=MarkFails(host, str(host.root)), manual=host.family)
    assert tree(host.root) == before and state(host)["locks"] == {} and held(host) == {"bash"}


def test_a_pin_cut_off_before_the_file_is_finished_by_the_next_run(host: FakeRpm) -> None:
    """What is recorded is ours: killed in between, the entries do not turn into a person's."""
    class Killed(type(backend(host, str(host.root)))):  # type: ignore[misc]
        def set_holds(self, hold: object, release: object, timeout: float) -> float:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pin(host, manager=Killed(host, str(host.root)))
    assert f"/{host.book}" in state(host)["locks"]["kernel"]
    outcome = pin(host)
    assert {row["owner"] for row in outcome.held if row["package"] != "bash"} == {"ours"}
    pin(host, present=False, packages=(), deny=())
    assert held(host) == {"bash"}


def test_an_entry_that_a_person_made_first_stays_theirs(host: FakeRpm) -> None:
    pin(host)
    text = host.read(host.book)
    (host.root / "var/lib/baremetal-nvidia/state.json").unlink()      # as if it had been there before us
    assert not pin(host).changed
    assert all(row["owner"] == "person" for row in pin(host).held if row["package"] in host.family)
    pin(host, present=False, packages=(), deny=())

    def but_the_count(lines: str) -> list[str]:
        return [line for line in lines.splitlines() if "installonly" not in line and "count" not in line]

    assert but_the_count(host.read(host.book)) == but_the_count(text)


def test_entries_taken_out_behind_our_back_come_again(host: FakeRpm) -> None:
    text = host.read(host.book)
    pin(host)
    host.write(host.book, text)
    outcome = pin(host)
    assert {f"hold {name}" for name in host.family} <= set(outcome.actions) and held(host) == {*host.family, "bash"}


def test_sets_share_a_file_and_leave_each_other_alone(host: FakeRpm) -> None:
    host.packages["nvidia-driver"] = ["3:580.95-1"]
    pin(host)
    pin(host, pin_set="driver", packages=("nvidia-driver",), deny=())
    assert held(host) == {*host.family, "bash", "nvidia-driver"}
    assert not pin(host).changed
    pin(host, present=False, packages=(), deny=())
    assert held(host) == {"bash", "nvidia-driver"}
    assert not pin(host, pin_set="driver", packages=("nvidia-driver",), deny=()).changed
    pin(host, pin_set="driver", present=False, packages=(), deny=())
    assert held(host) == {"bash"}


def test_holds_are_taken_and_given_by_full_names(host: FakeRpm) -> None:
    """What kernel staging uses to put holds back as they were."""
    pin(host)
    manager = backend(host, str(host.root))
    full = [p.full for name in host.family for p in manager.installed()[name]]
    assert manager.set_holds([], full, 1.0) < 1.0 and held(host) == {"bash"}
    manager.set_holds(full, [], 1.0)
    assert held(host) == {*host.family, "bash"}
    before = tree(host.root)
    manager.set_holds(full, [], 1.0)
    assert tree(host.root) == before


# dnf 4


def test_every_version_that_stands_side_by_side_is_locked(tmp_path: pathlib.Path) -> None:
    host = el(tmp_path).dnf4()
    host.family, host.others = EL, ()
    host.packages["kernel-core"] = [OLD, NEW]
    pin(host)
    assert {f"kernel-core-0:{v}.*" for v in (OLD, NEW)} <= set(host.read(LIST).splitlines())
    host.packages["kernel-core"] = [NEW]       # the older one was pruned: its entry goes
    assert pin(host).changed and f"kernel-core-0:{OLD}.*" not in host.read(LIST)


@pytest.mark.parametrize("entry, name, evr", [
    ("kernel-core-0:5.14.0-503.el9.*", "kernel-core", "5.14.0-503.el9"),
    ("kernel-64k-core-0:5.14.0-503.el9.*", "kernel-64k-core", "5.14.0-503.el9"),
    ("nvidia-driver-3:580.95-1.el9.x86_64", "nvidia-driver", "3:580.95-1.el9"),
    ("kernel-core-5.14.0-*", "kernel-core", "5.14.0-*"),
    ("!kernel-64k-core", "kernel-64k-core", ""),
    ("!kernel-64k-debug-core", "kernel-64k-debug-core", ""),
    ("!kernel-rt-64k-core", "kernel-rt-64k-core", ""),
    ("!kernel-64k*", "kernel-64k*", ""),
    ("!kmod-nvidia-580.95.05-5.14.0-503.40.1", "kmod-nvidia-580.95.05-5.14.0-503.40.1", ""),
    ("!kernel-core-0:5.14.0-503.el9.*", "kernel-core", "5.14.0-503.el9"),
    ("!kernel-core-5.14.0-503.el9.x86_64", "kernel-core", "5.14.0-503.el9"),
    ("kmod-nvidia-580.95-5.14.0-503.40.1-3:580.95-1.el9_5.*", "kmod-nvidia-580.95-5.14.0-503.40.1", "3:580.95-1.el9_5"),
])
def test_names_and_versions_in_entries_of_versionlock(entry: str, name: str, evr: str) -> None:
    assert VersionLockList.split(entry) == (name, evr)


def test_a_persons_entry_that_opens_a_held_name_is_said(tmp_path: pathlib.Path) -> None:
    host = el(tmp_path).dnf4()
    host.family, host.others = EL, ()
    host.write(LIST, f"kernel-core-0:{NEW}.*\n")
    with pytest.raises(PinError, match=rf"kernel-core may still move: /{LIST} has kernel-core-0:{NEW}\.\*, which"):
        pin(host)
    assert host.read(LIST) == f"kernel-core-0:{NEW}.*\n" and "installonly_limit=3" in host.read(CONF)
    assert state(host)["locks"] == {}


def test_a_persons_exclusion_by_pattern_is_theirs(tmp_path: pathlib.Path) -> None:
    host = el(tmp_path).dnf4(plugin=False, conf="[main]\nexclude=kernel*\n")
    host.family, host.others = EL, EL_OTHERS
    assert {r["owner"] for r in pin(host).held if r["package"] in EL} == {"person"}
    pin(host, present=False, packages=(), deny=())
    assert host.read(CONF) == "[main]\nexclude=kernel*\n"


@pytest.mark.parametrize("conf", ["", "[main]\nenabled = 0\nlocklist = /x\n", "[main]\nenabled=1\n", "no section\n"])
def test_a_plugin_that_does_not_work_means_exclusions(tmp_path: pathlib.Path, conf: str) -> None:
    host = el(tmp_path).dnf4()
    host.write("etc/dnf/plugins/versionlock.conf", conf)
    host.family, host.others = EL, EL_OTHERS
    assert {row["how"] for row in pin(host).held} == {"exclude"}
    names = ",".join(sorted((*EL, *EL_OTHERS)))
    assert f"excludepkgs={names}\n" in host.read(CONF)


def test_when_the_plugin_comes_the_exclusions_go(tmp_path: pathlib.Path) -> None:
    host = el(tmp_path).dnf4(plugin=False)
    host.family, host.others = EL, EL_OTHERS
    pin(host)
    host.dnf4(conf=host.read(CONF))
    pin(host)
    assert "exclude" not in host.read(CONF) and held(host) == set(EL)
    assert list(state(host)["locks"]["kernel"]) == [f"/{LIST}"]


@pytest.mark.parametrize("name", ["PackageKit", "microdnf"])
def test_what_knows_no_plugins_is_kept_off_by_exclusions(tmp_path: pathlib.Path, name: str) -> None:
    host = el(tmp_path).dnf4()
    host.packages[name] = ["1-1"]
    host.family, host.others = EL, EL_OTHERS
    assert {row["how"] for row in pin(host).held} == {"versionlock"}
    assert "excludepkgs=kernel," in host.read(CONF) and "kernel-core-0:" in host.read(LIST)
    host.write(LIST, "")
    assert held(host) == set(), "held for one and not for the other is not held"
    assert pin(host).changed and not pin(host).changed
    pin(host, present=False, packages=(), deny=())
    assert "excludepkgs" not in host.read(CONF) and host.read(LIST) == ""


@pytest.mark.parametrize("before, kernels, after", [
    ("[main]\ninstallonly_limit=3\n", 1, 0),
    ("[main]\ninstallonly_limit=2\n", 1, 0),
    ("[main]\ninstallonly_limit = 10\n", 1, 10),      # a person's higher number
    ("[main]\ninstallonly_limit = 10\n", 9, 0),       # which nine kernels have used up
    ("[main]\ninstallonly_limit=0\n", 1, 0),
    ("[main]\ninstallonly_limit=<off>\n", 1, 0),
    ("[main]\n", 1, 0),
    ("", 1, 0),
])
def test_no_kernel_is_thrown_out_by_its_count(tmp_path: pathlib.Path, before: str, kernels: int, after: int) -> None:
    from ansible_collections.baremetal.nvidia.plugins.module_utils.packages import dnf_conf
    host = el(tmp_path).dnf4(conf=before)
    host.packages["kernel-core"] = [f"5.14.0-{n}.el9" for n in range(kernels)]
    host.family, host.others = EL, ()
    pin(host)
    assert dnf_conf.limit_of(host.read(CONF)) == after
    assert not pin(host).changed
    pin(host, present=False, packages=(), deny=())
    assert host.read(CONF).replace("[main]\n", "") == before.replace("[main]\n", "")


def test_a_number_that_a_person_wrote_since_stays(tmp_path: pathlib.Path) -> None:
    host = el(tmp_path).dnf4()
    host.family, host.others = EL, ()
    pin(host)
    host.write(CONF, host.read(CONF).replace("installonly_limit=0", "installonly_limit=7"))
    pin(host)
    assert "installonly_limit=7" in host.read(CONF)
    pin(host, present=False, packages=(), deny=())
    assert "installonly_limit=7" in host.read(CONF) and "baremetal" not in host.read(CONF)


def test_other_sets_do_not_touch_the_count(tmp_path: pathlib.Path) -> None:
    host = el(tmp_path).dnf4()
    host.packages["nvidia-driver"] = ["3:580.95-1"]
    host.family, host.others = ("nvidia-driver",), ()
    pin(host, pin_set="driver")
    assert "installonly_limit=3" in host.read(CONF)
    assert "nvidia-driver-3:580.95-1.*" in host.read(LIST)


def test_manual_marks(tmp_path: pathlib.Path) -> None:
    host = el(tmp_path).dnf4()
    host.family, host.others = EL, ()
    assert "mark kernel-core manual" in pin(host, manual=("kernel-core",)).actions
    assert host.manual == {"kernel-core"} and not pin(host, manual=("kernel-core",)).changed
    pin(host, present=False, packages=(), deny=())
    assert host.manual == set()


def test_a_running_dnf_is_waited_for_and_named(tmp_path: pathlib.Path) -> None:
    host = el(tmp_path).dnf4()
    host.write("var/cache/dnf/metadata_lock.pid", "4242\n")
    host.write("proc/4242/cmdline", "/usr/bin/python3\0/usr/bin/dnf\0upgrade\0")
    now = [0.0]
    manager = Dnf(host, str(tmp_path), sleep=lambda s: now.__setitem__(0, now[0] + s), clock=lambda: now[0],
                  proc=str(tmp_path / "proc"))
    with pytest.raises(LockHeld, match=r"metadata_lock\.pid was still locked after 5 s: pid 4242 \(/usr/bin/python3"):
        manager.wait_for_lock(5.0)
    host.write("proc/4242/cmdline", "sleep\0")      # the pid is another program's by now
    assert manager.wait_for_lock(5.0) == 0.0


# dnf 5


def test_dnf5_takes_a_drop_in_where_dnf_conf_is_silent(tmp_path: pathlib.Path) -> None:
    host = el(tmp_path).dnf5()
    host.family, host.others = EL, ()
    pin(host)
    assert "installonly_limit=0" in host.read(DROP_IN) and host.read(CONF) == "[main]\n"
    assert not pin(host).changed
    pin(host, present=False, packages=(), deny=())
    assert not (host.root / DROP_IN).exists()


@pytest.mark.parametrize("name, text, ours", [
    ("20-user.conf", "[main]\ninstallonly_limit=20\n", False),
    ("20-user.conf", "[main]\ninstallonly_limit=2\n", True),
])
def test_dnf5_keeps_a_persons_drop_in(tmp_path: pathlib.Path, name: str, text: str, ours: bool) -> None:
    host = el(tmp_path).dnf5()
    host.write(f"etc/dnf/libdnf5.conf.d/{name}", text)
    host.family, host.others = EL, ()
    pin(host)
    assert (host.root / DROP_IN).exists() is ours and not pin(host).changed


def test_dnf5_edits_dnf_conf_where_that_says_a_number(tmp_path: pathlib.Path) -> None:
    """dnf.conf is read after the drop-ins, so one of them would have no effect."""
    host = el(tmp_path).dnf5(conf="[main]\ninstallonly_limit=3\n")
    host.family, host.others = EL, ()
    pin(host)
    assert "installonly_limit=0" in host.read(CONF) and not (host.root / DROP_IN).exists()


def test_both_generations_are_pinned(tmp_path: pathlib.Path) -> None:
    host = el(tmp_path).dnf4().dnf5(conf="[main]\n")
    host.family, host.others = EL, EL_OTHERS
    pin(host)
    assert "kernel-core" in host.read(LIST) and "kernel-core" in host.read(TOML) and held(host) == set(EL)
    host.write(LIST, "")
    assert held(host) == set(), "held by one of the two is not held"


def test_dnf5_file_in_the_other_notation_is_refused_by_name(tmp_path: pathlib.Path) -> None:
    host = el(tmp_path).dnf5()
    host.write(TOML, 'version = "1.0"\npackages = [{name = "x", conditions = []}]\n')
    host.family, host.others = EL, ()
    with pytest.raises(HostError, match=r"versionlock\.toml has its packages as one inline array"):
        pin(host)


# zypper


def test_zypper_marks_in_libzypps_list(tmp_path: pathlib.Path) -> None:
    host = FakeRpm(tmp_path, {"kernel-default": ["6.4-1"]}).zypper()
    host.write("var/lib/zypp/AutoInstalled", "# by libzypp\nkernel-default\nx\n")
    host.family, host.others = ("kernel-default",), ()
    pin(host, manual=("kernel-default",))
    assert host.read("var/lib/zypp/AutoInstalled") == "# by libzypp\nx\n"
    pin(host, present=False, packages=(), deny=())
    assert host.read("var/lib/zypp/AutoInstalled") == "# by libzypp\nx\nkernel-default\n"


def test_a_running_zypper_is_named(tmp_path: pathlib.Path) -> None:
    host = FakeRpm(tmp_path, {}).zypper()
    host.write("run/zypp.pid", "77\n")
    host.write("proc/77/cmdline", "zypper\0dup\0")
    with pytest.raises(LockHeld, match=r"pid 77 \(zypper dup\)"):
        Zypper(host, str(tmp_path), proc=str(tmp_path / "proc")).wait_for_lock(0.0)


@pytest.mark.parametrize("release, found", [
    ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf"),
    ("ID=fedora\n", "dnf"),
    ('ID="sles"\nID_LIKE="suse"\n', "zypper"),
    ("ID=ubuntu\nID_LIKE=debian\n", "apt"),
    ("ID=arch\n", "zypper"),       # by what is there
])
def test_the_systems_family_comes_before_programs_that_are_installed_beside(
        tmp_path: pathlib.Path, release: str, found: str) -> None:
    host = FakeRpm(tmp_path).zypper().dnf4()
    host.write("etc/os-release", release)
    assert detect(str(tmp_path)) == found
