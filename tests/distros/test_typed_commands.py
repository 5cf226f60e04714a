# SPDX-License-Identifier: GPL-3.0-or-later
"""What people type, typed: against real apt, dnf and zypper, with archives that offer kernels without modules."""

from __future__ import annotations

import re

import pytest
from distros import FREE, GATED, HELD, HOSTS, PRUNED

TYPED = [(name, row) for name, host in HOSTS.items() for row in host["commands"]]
on_each_host = pytest.mark.parametrize("name", list(HOSTS))
each_command = pytest.mark.parametrize(("name", "typed"), TYPED,
                                       ids=[f"{name}: {row['command']}" for name, row in TYPED])


@each_command
def test_while_nothing_is_held_it_moves_the_kernel(world, name, typed):
    """Without this the next test could not fail."""
    before, after = world.done[name, FREE, "true"], world.done[name, FREE, typed["command"]]
    assert before.kernels == [HOSTS[name]["installed"]]
    if typed["moves"]:
        assert typed["moves"] in after.kernels, after.output
    else:
        assert after.kernels == before.kernels, after.output
    assert (after.other != before.other) is typed["upgrades"], after.output


@each_command
def test_a_held_kernel_stays(world, name, typed):
    before, after = world.done[name, HELD, "true"], world.done[name, HELD, typed["command"]]
    assert after.same_kernel(before), after.output
    assert (after.other != before.other) is typed["upgrades"], after.output


def recap(text, name):
    found = re.search(rf"^{name} +: .*?changed=(\d+) .*?failed=(\d+)", text, re.M)
    assert found, text[-6000:]
    return int(found.group(1)), int(found.group(2))


@on_each_host
def test_to_hold_twice_changes_nothing(world, name):
    changed, failed = recap(world.hold, name)
    assert changed > 0 and not failed, world.hold
    assert recap(world.hold_again, name) == (0, 0), world.hold_again


@on_each_host
def test_gated_moves_it_exactly_as_far_as_a_module_exists(world, name):
    host, after = HOSTS[name], world.done[name, GATED, "true"]
    assert recap(world.stage, name)[1] == 0, world.stage
    assert set(after.kernels) == {host["installed"], host["staged"]}, world.stage
    assert world.modules[name].split()[0] in (host["staged"], host["installed"])  # of a KMP: that it was built for
    assert after.grubenv and not any(host["staged"] in line for line in after.grubenv)  # the default stays


@each_command
def test_after_it_no_command_moves_it_further(world, name, typed):
    before, after = world.done[name, GATED, "true"], world.done[name, GATED, typed["command"]]
    assert after.same_kernel(before), after.output


@on_each_host
def test_a_staging_that_was_killed_is_taken_back_to_the_byte(world, name):
    """The playbook compares packages, marks, holds, /boot, modules and DKMS before and after."""
    assert recap(world.cut, name)[1] == 0, world.cut


@pytest.mark.parametrize("name", [name for name, host in HOSTS.items() if "boots" in host])
def test_it_is_started_once_falls_back_and_becomes_the_default(world, name):
    """With GRUB's own grub2-editenv, with grubby where entries are files, and /boot on a partition."""
    assert recap(world.boot, name)[1] == 0, world.boot


@pytest.mark.parametrize("name", [name for name, host in HOSTS.items() if "pruned" in host])
def test_old_kernels_go_and_the_others_stay(world, name):
    assert recap(world.prune, name)[1] == 0, world.prune
    before, after = world.done[name, GATED, "true"], world.done[name, PRUNED, "true"]
    assert (after.kernels, after.packages) == (before.kernels, before.packages), world.prune


@on_each_host
def test_the_role_taken_away_leaves_what_people_set_and_nothing_of_its_own(world, name):
    assert recap(world.undo, name)[0] > 0 and recap(world.undo, name)[1] == 0, world.undo
    assert recap(world.undo_again, name) == (0, 0), world.undo_again
    before, after = world.settings[name], world.settings_after[name]
    if f"Boot default: kernel {HOSTS[name]['installed']} starts by default" in world.undo:
        # the distribution would start the newer kernel, whose trial nobody saw: the default stays saved
        after = [line for line in after if not re.search(r"/grub\.d/.*baremetal", line)]
    assert after == before, world.undo
