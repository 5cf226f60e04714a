# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of the emulated cluster, and what creating, patching and deleting does to them."""

from __future__ import annotations

import copy
import datetime
import re
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from . import schema
from .kinds import Kind, built_in, of_definition

Object = dict[str, Any]
Key = tuple[str, str, str, str]
CRDS = "customresourcedefinitions"


class Refused(Exception):
    """A request that the server answers with an error."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details or {}


class Store:
    """All objects, by group, plural, namespace and name. ``watchers`` are called after each change."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.objects: dict[Key, Object] = {}
        self.watchers: list[Callable[[Kind, Object], None]] = []
        self.changes = 0
        self.writes: list[str] = []    # what clients changed, for the tests: "PATCH nodes/g1"
        self.events: list[tuple[int, str, Key, Object]] = []    # what watchers over HTTP are told
        self.applied: dict[tuple[Key, str], Object] = {}    # what each field manager applied last
        self._built_in = built_in()

    def kinds(self) -> list[Kind]:
        """What is served now."""
        definitions = [one for key, one in self.objects.items() if key[1] == CRDS]
        return [*self._built_in, *(kind for one in definitions for kind in of_definition(one))]

    def kind(self, group: str, version: str, plural: str) -> Kind:
        """The kind of a path. Raises Refused (404)."""
        for kind in self.kinds():
            if (kind.group, kind.version, kind.plural) == (group, version, plural):
                return kind
        raise Refused(404, "NotFound", "the server could not find the requested resource")

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """One object. Raises Refused (404)."""
        found = self.objects.get((kind.group, kind.plural, namespace, name))
        if found is None:
            raise Refused(404, "NotFound", f'{kind.plural}{"." + kind.group if kind.group else ""} "{name}" not found')
        return self._as(kind, found)

    def list(self, kind: Kind, namespace: str, labels: str = "", fields: str = "") -> list[Object]:
        """Objects of a kind, in one namespace or (empty) in all, that both selectors match."""
        found = [one for key, one in sorted(self.objects.items())
                 if key[:2] == (kind.group, kind.plural) and (not namespace or key[2] == namespace)]
        return [self._as(kind, one) for one in found if _selected(one, labels) and _has_fields(one, fields)]

    def create(self, kind: Kind, namespace: str, given: Object) -> Object:
        """Add an object. Raises Refused (409 if it is there, 422 if it is invalid, 404 without its namespace)."""
        meta = given.setdefault("metadata", {})
        name = meta.get("name") or f"{meta.get('generateName', 'object-')}{uuid.uuid4().hex[:5]}"
        key = (kind.group, kind.plural, namespace, name)
        if key in self.objects:
            raise Refused(409, "AlreadyExists", f'{kind.plural} "{name}" already exists')
        if namespace and ("", "namespaces", "", namespace) not in self.objects:
            raise Refused(404, "NotFound", f'namespaces "{namespace}" not found')
        meta.update({"name": name, "uid": str(uuid.uuid4()), "generation": 1,
                     "creationTimestamp": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")})
        if namespace:
            meta["namespace"] = namespace
        return self._keep(kind, key, given)

    def apply(self, kind: Kind, namespace: str, name: str, given: Object, manager: str, dry: bool = False) -> Object:
        """Server-side apply: what is given, less what the same manager applied before and leaves out now."""
        key = (kind.group, kind.plural, namespace, name)
        before = self.applied.get((key, manager))
        if not dry:
            self.applied[key, manager] = copy.deepcopy(given)
        if key not in self.objects:
            return self.create(kind, namespace, copy.deepcopy(given))
        after = merge(_without(self.get(kind, namespace, name), before or {}, given), given)
        after["metadata"].pop("resourceVersion", None)
        return self.replace(kind, namespace, name, after)

    def replace(self, kind: Kind, namespace: str, name: str, given: Object) -> Object:
        """Put an object in the place of the one that is there. Raises Refused."""
        before = self.get(kind, namespace, name)
        version = given.get("metadata", {}).get("resourceVersion")
        if version and version != before["metadata"]["resourceVersion"]:
            raise Refused(409, "Conflict", f'{kind.plural} "{name}": the object has been modified')
        meta = {**given.get("metadata", {}), **{field: before["metadata"][field]
                                                for field in ("uid", "creationTimestamp", "generation", "name")}}
        if namespace:
            meta["namespace"] = namespace
        after = {**given, "metadata": meta}
        if "status" in before and "status" not in given:
            after["status"] = before["status"]
        _immutable(kind, before, after)
        return self._keep(kind, (kind.group, kind.plural, namespace, name), after)

    def delete(self, kind: Kind, namespace: str, name: str) -> Object:
        """Remove an object, or mark it while finalizers are left. Raises Refused (404)."""
        found = self.get(kind, namespace, name)
        key = (kind.group, kind.plural, namespace, name)
        if found["metadata"].get("finalizers"):
            found["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z"
            return self._keep(kind, key, found)
        self._gone(key)
        if kind.plural == "namespaces":
            for other in [one for one in self.objects if one[2] == name]:
                del self.objects[other]
        if kind.plural == CRDS:
            for gone in of_definition(found):
                for other in [one for one in self.objects if one[:2] == (gone.group, gone.plural)]:
                    del self.objects[other]
        return found

    def _gone(self, key: Key) -> None:
        """Take an object out, and what it owns."""
        found = self.objects.pop(key)
        self.applied = {told: one for told, one in self.applied.items() if told[0] != key}
        self.changes += 1
        self.events.append((self.changes, "DELETED", key, found))
        uid = found["metadata"]["uid"]
        owned = [other for other, one in self.objects.items()
                 if uid in (owner.get("uid") for owner in one["metadata"].get("ownerReferences") or ())]
        for other in owned:
            if other in self.objects:
                self._gone(other)

    def _keep(self, kind: Kind, key: Key, given: Object) -> Object:
        kept = copy.deepcopy(given)
        if kind.schema is not None:
            try:
                kept = schema.admit(kind.schema, kept)
            except schema.Invalid as exc:
                raise Refused(422, "Invalid", f'{kind.kind}.{kind.group} "{key[3]}" is invalid: {exc}') from exc
        before = self.objects.get(key)
        if before is not None:
            same = {**kept["metadata"], "resourceVersion": "", "generation": 0, "managedFields": []} == {
                **before["metadata"], "resourceVersion": "", "generation": 0, "managedFields": []}
            if same and _body(before) == _body(kept):
                return self._as(kind, before)
            if before.get("spec") != kept.get("spec"):
                kept["metadata"]["generation"] = before["metadata"]["generation"] + 1
        self.changes += 1
        kept["metadata"]["resourceVersion"] = str(self.changes)
        if kind.plural == CRDS:
            names = kept["spec"]["names"]
            stored = [one["name"] for one in kept["spec"]["versions"]]
            kept["status"] = {"acceptedNames": names, "storedVersions": stored,
                              "conditions": [{"type": "Established", "status": "True"},
                                             {"type": "NamesAccepted", "status": "True"}]}
        if kept["metadata"].get("deletionTimestamp") and not kept["metadata"].get("finalizers"):
            if key in self.objects:
                self._gone(key)
            return self._as(kind, kept)
        self.objects[key] = kept
        for watcher in self.watchers:
            watcher(kind, kept)
        if self.watchers:
            self.events.append((self.changes, "ADDED" if before is None else "MODIFIED", key, copy.deepcopy(kept)))
        return self._as(kind, kept)

    def _as(self, kind: Kind, found: Object) -> Object:
        return {**copy.deepcopy(found), "apiVersion": kind.group_version, "kind": kind.kind}


def merge(before: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386). Lists of a strategic patch or an apply are replaced as a whole, too."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    merged = dict(before) if isinstance(before, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif not str(key).startswith("$"):
            merged[key] = merge(merged.get(key), value)
    return merged


def _without(present: Any, before: Any, given: Any) -> Any:
    """Return what is there less the keys that were applied before and are not any more."""
    if not (isinstance(present, Mapping) and isinstance(before, Mapping)):
        return present
    kept = {}
    for key, value in present.items():
        if key in before and isinstance(given, Mapping) and key not in given:
            if isinstance(before[key], Mapping) and isinstance(value, Mapping):    # others may own keys beside ours
                left = _without(value, before[key], {})
                if left:
                    kept[key] = left
            continue
        inner = given.get(key) if isinstance(given, Mapping) else None
        kept[key] = _without(value, before.get(key), inner)
    return kept


def _body(one: Object) -> Object:
    return {key: value for key, value in one.items() if key not in ("metadata", "apiVersion", "kind")}


def _immutable(kind: Kind, before: Object, after: Object) -> None:
    """Refuse what a server refuses: fields of NVIDIADriver (CEL rules) and of PriorityClass that never change."""
    if kind.kind == "PriorityClass":
        for field in ("value", "preemptionPolicy"):
            if before.get(field) != after.get(field):
                raise Refused(422, "Forbidden", f"PriorityClass.scheduling.k8s.io: {field}: Forbidden: may not be "
                                                f"changed in an update")
    if kind.kind != "NVIDIADriver":
        return
    for field in ("driverType", "usePrecompiled"):
        if before["spec"].get(field) != after.get("spec", {}).get(field):
            raise Refused(422, "Invalid", f'NVIDIADriver.nvidia.com "{before["metadata"]["name"]}" is invalid: '
                                          f"spec.{field}: Invalid value: {field} is an immutable field")


def _selected(one: Object, selector: str) -> bool:
    labels = one["metadata"].get("labels") or {}
    for term in filter(None, (part.strip() for part in re.split(r",(?![^(]*\))", selector))):
        within = re.fullmatch(r"(\S+) in \((.*)\)", term)
        if within:
            if labels.get(within[1]) not in [one.strip() for one in within[2].split(",")]:
                return False
        elif "!=" in term:
            key, _sign, value = term.partition("!=")
            if labels.get(key) == value:
                return False
        elif "=" in term:
            key, _sign, value = term.replace("==", "=").partition("=")
            if labels.get(key) != value:
                return False
        elif term.startswith("!"):
            if term[1:] in labels:
                return False
        elif term not in labels:
            return False
    return True


def _has_fields(one: Object, selector: str) -> bool:
    for term in filter(None, selector.split(",")):
        path, _sign, value = term.replace("==", "=").partition("=")
        here: Any = one
        for key in path.split("."):
            here = here.get(key) if isinstance(here, Mapping) else None
        if str(here) != value:
            return False
    return True
