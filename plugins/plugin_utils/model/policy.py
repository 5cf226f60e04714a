# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the person wants: the policy variables, their defaults (``policy.yml``) and what they accept.

``validate`` takes any mapping and returns every policy variable, defaults filled in, in its plain type. Whatever is
wrong raises :class:`PolicyError`, which names the variable, the value and what is allowed.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from . import containerd, containers, cuda_request, cuda_wishes, offline, sharing

_Check = Callable[[str, Any, Mapping[str, Any]], Any]
_FILE = Path(__file__).with_name("policy.yml")
_TRUE = frozenset(("true", "yes", "on", "1", "y", "t"))
_FALSE = frozenset(("false", "no", "off", "0", "n", "f"))
_DOTTED = re.compile(r"[0-9]+(\.[0-9]+)*\Z")
_RULE = re.compile(r"[A-Z]{3}[0-9]{3}\Z")
_RELEASE = re.compile(r"[0-9]+\.[0-9]+[A-Za-z0-9._+~-]*\Z")
_QUOTE = "a text; YAML made a number of it, quote it"


class PolicyError(ValueError):
    """A policy variable that cannot be meant: ``variable``, ``value`` and ``allowed`` say which, what and what else."""

    def __init__(self, variable: str, value: object, allowed: str) -> None:
        super().__init__(f"{variable}: {value!r} is not allowed; allowed is {allowed}")
        self.variable = variable
        self.value = value
        self.allowed = allowed


@lru_cache(maxsize=1)
def spec() -> Mapping[str, Mapping[str, Any]]:
    """Return the description of every policy variable as ``policy.yml`` has it; not to be changed."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: Mapping[str, Mapping[str, Any]] = yaml.load(_FILE.read_text(encoding="utf-8"), Loader=loader)
    return loaded


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Return the names of all policy variables, in the order of ``policy.yml``."""
    return tuple(spec())


def load_defaults() -> dict[str, Any]:
    """Return all policy variables at their defaults, as a new mapping."""
    return {name: _copy(entry.get("default")) for name, entry in spec().items()}


def validate(policy: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return all policy variables, checked and in plain types; raise :class:`PolicyError` for what cannot be meant.

    Names that are no policy variable are left out: they are the caller's business.
    """
    if policy is not None and not isinstance(policy, Mapping):
        raise PolicyError("policy", policy, "a mapping of policy variables")
    given = policy or {}
    checked = load_defaults()
    for name, entry in spec().items():
        value = given.get(name)
        if value is not None and not (isinstance(value, str) and value == "" and entry["type"] == "str"):
            checked[name] = _CHECKS.get(name, _CHECKS[entry["type"]])(name, value, entry)
    return checked


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(value)
    return list(value) if isinstance(value, list) else value


def _text(name: str, value: Any, entry: Mapping[str, Any]) -> str:
    choices = entry.get("choices")
    if value is False and choices and "off" in choices:
        return "off"
    if isinstance(value, float):
        raise PolicyError(name, value, _QUOTE)
    if not isinstance(value, str):
        raise PolicyError(name, value, "a text" if not choices else f"one of {', '.join(choices)}")
    if choices and value not in choices:
        raise PolicyError(name, value, f"one of {', '.join(choices)}")
    return str(value)


def _number_text(name: str, value: Any) -> str:
    if isinstance(value, float):
        raise PolicyError(name, value, _QUOTE)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise PolicyError(name, value, "a version as text")
    return str(value).strip()


def _branch(name: str, value: Any, entry: Mapping[str, Any]) -> str:
    text = _number_text(name, value)
    if text != "auto" and not re.fullmatch(r"[0-9]{3}", text):
        raise PolicyError(name, value, 'auto or a branch of three digits, such as "580"')
    return text


def _version(name: str, value: Any, entry: Mapping[str, Any]) -> str:
    text = _number_text(name, value)
    if not _DOTTED.match(text) or len(text) > 32:
        raise PolicyError(name, value, 'a version of dotted numbers, such as "580.173.02"')
    return text


_MODULES = ("nvidia", "nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia_peermem")


def _module_options(name: str, value: Any, entry: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    checked: dict[str, dict[str, str]] = {}
    for module, options in _mapping(name, value, entry).items():
        plain = str(module).replace("-", "_")
        if plain not in _MODULES:
            raise PolicyError(name, module, f"the modules {', '.join(_MODULES)}")
        if not isinstance(options, Mapping) or not options:
            raise PolicyError(f"{name}.{module}", options, "a mapping of options, such as {modeset: 1}")
        for key, given in options.items():
            text = str(int(given)) if isinstance(given, bool) else str(given)
            good = isinstance(given, (str, int)) and re.fullmatch(r"[^\s\"'\\#]{1,256}", text)
            if not isinstance(key, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", key) or not good:
                raise PolicyError(f"{name}.{module}.{key}", given, "a whole number or a text without blanks and quotes")
            checked.setdefault(plain, {})[str(key)] = text
    return checked


def _secret(name: str, value: Any, entry: Mapping[str, Any]) -> bool:
    """Say that a secret is given. The value itself goes no further: plans are printed, stored and handed on."""
    if value is True:  # checked before
        return True
    if not isinstance(value, str):
        raise PolicyError(name, f"a {type(value).__name__}", "a text; quote it")
    if not 8 <= len(value) <= 64 or not all(" " < char <= "~" for char in value):
        raise PolicyError(name, f"a text of {len(value)} characters",
                          "a text of 8 to 64 letters, digits and signs of ASCII, without blanks")
    return True


def _driver_version(name: str, value: Any, entry: Mapping[str, Any]) -> str:
    text = _version(name, value, entry)
    if not re.fullmatch(r"[0-9]{3}\.[0-9]{2,3}(\.[0-9]{2})?", text):
        raise PolicyError(name, value, 'a full driver version, such as "580.173.02"')
    return text


def _operator(name: str, value: Any, entry: Mapping[str, Any]) -> str:
    text = _number_text(name, value)
    if not re.fullmatch(r"v?[0-9]{2}\.[0-9]{1,2}\.[0-9]{1,2}", text):
        raise PolicyError(name, value, 'a full release of the operator, such as "v26.7.0"')
    return text


def _release(name: str, value: Any, entry: Mapping[str, Any]) -> str:
    text = _text(name, value, entry)
    if not _RELEASE.match(text) or len(text) > 128:
        raise PolicyError(name, value, "a kernel release as uname -r prints it, such as 6.1.0-50-amd64")
    return text


def _cuda(name: str, value: Any, entry: Mapping[str, Any]) -> str:
    text = _number_text(name, value)
    try:
        cuda_request.parse(text)
    except ValueError as error:
        raise PolicyError(name, value, str(error)) from None
    return text


def _boolean(name: str, value: Any, entry: Mapping[str, Any]) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, (str, int)) else ""
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise PolicyError(name, value, "true or false")


def _integer(name: str, value: Any, entry: Mapping[str, Any]) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    raise PolicyError(name, value, "a whole number that is not negative")


def _keep(name: str, value: Any, entry: Mapping[str, Any]) -> int:
    number = _integer(name, value, entry)
    if number < 2:
        raise PolicyError(name, value, "2 or more: the proved kernel and the one before it")
    return number


def _module_names(name: str, value: Any, entry: Mapping[str, Any]) -> list[str]:
    found = _list(name, value, entry)
    for one in found:
        if not isinstance(one, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", one):
            raise PolicyError(name, one, "names of modules as the facts have them, such as mlnx-ofed or zfs")
    return [str(one) for one in found]


def _mapping(name: str, value: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise PolicyError(name, value, "a mapping")
    return dict(value)


def _frameworks(name: str, value: Any, entry: Mapping[str, Any]) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise PolicyError(name, value, 'a mapping of framework and version, such as {pytorch: "2.7"}')
    checked = {}
    for key, version in value.items():
        if not isinstance(key, str):
            raise PolicyError(name, key, "the name of a framework as key")
        checked[str(key)] = _version(f"{name}.{key}", version, entry)
    return checked


def _list(name: str, value: Any, entry: Mapping[str, Any]) -> list[Any]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, (list, tuple)):
        raise PolicyError(name, value, "a list")
    return list(value)


def _waivers(name: str, value: Any, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [_waiver(f"{name}[{index}]", waiver) for index, waiver in enumerate(_list(name, value, entry))]


def _waiver(name: str, waiver: Any) -> dict[str, Any]:
    if not isinstance(waiver, Mapping):
        raise PolicyError(name, waiver, "a mapping with rule, reason and until")
    for key in waiver:
        if key not in ("rule", "host", "reason", "until"):
            raise PolicyError(f"{name}.{key}", waiver[key], "one of the keys rule, host, reason and until")
    rule, host, reason = waiver.get("rule"), waiver.get("host", "*"), waiver.get("reason")
    if not isinstance(rule, str) or not _RULE.match(rule):
        raise PolicyError(f"{name}.rule", rule, "the id of a rule, such as KRN004")
    if not isinstance(host, str) or not host:
        raise PolicyError(f"{name}.host", host, "a host name or a pattern, such as gpu-a*")
    if not isinstance(reason, str) or not reason.strip():
        raise PolicyError(f"{name}.reason", reason, "a reason in words")
    return {"rule": rule, "host": host, "reason": reason, "until": _date(f"{name}.until", waiver.get("until"))}


def _repository(name: str, value: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    given = _mapping(name, value, entry)
    for key in given:
        if key not in ("url", "suite", "components", "key_url", "fingerprint", "proxy"):
            allowed = "one of url, suite, components, key_url, fingerprint and proxy"
            raise PolicyError(f"{name}.{key}", given[key], allowed)
    url, fingerprint = given.get("url"), given.get("fingerprint")
    if not isinstance(url, str) or not re.match(r"(https?|file):/", url) or any(char.isspace() for char in url):
        raise PolicyError(f"{name}.url", url, "the address of a repository")
    digits = "".join(fingerprint.split()).upper() if isinstance(fingerprint, str) else ""
    if not re.fullmatch(r"[0-9A-F]{40}", digits):
        raise PolicyError(f"{name}.fingerprint", fingerprint, "the key's full fingerprint, 40 hex digits")
    components = given.get("components") or []
    if not isinstance(components, (list, tuple)) or not all(_word(one) for one in components):
        raise PolicyError(f"{name}.components", components, "a list of names")
    suite, key_url = given.get("suite") or "/", given.get("key_url")
    if not _word(suite):
        raise PolicyError(f"{name}.suite", suite, "the name of a suite, or a path that ends with /")
    if key_url is not None and not _word(key_url):
        raise PolicyError(f"{name}.key_url", key_url, "the address of the key")
    found = {"url": url, "suite": suite, "components": list(components), "key_url": key_url, "fingerprint": digits}
    if given.get("proxy") is not None:
        found["proxy"] = _proxy(f"{name}.proxy", given["proxy"], entry) if given["proxy"] != "" else ""
    return found


def _proxy(name: str, value: Any, entry: Mapping[str, Any]) -> str:
    text = value if isinstance(value, str) else ""
    if re.match(r"https?://[^/\s]*@", text):  # the value holds a secret, and is not shown
        raise PolicyError(name, re.sub(r"//[^/\s]*@", "//***@", text), "an address without credentials: give those to "
                                                                       "the proxy by the host's address, or in the "
                                                                       "environment of the play")
    if not re.fullmatch(r"https?://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?/?", text):
        raise PolicyError(name, value, "the address of a proxy, such as http://proxy.local:3128")
    return text.rstrip("/")


def _runtime(name: str, value: Any, entry: Mapping[str, Any]) -> str:
    text = _text(name, value, entry)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", text):
        raise PolicyError(name, value, "the name of a runtime, such as nvidia or runc")
    return text


def _word(value: Any) -> bool:
    """Whether it is a text without blanks and line breaks, which would be read as something else in a source file."""
    return isinstance(value, str) and value != "" and not any(char.isspace() or ord(char) < 32 for char in value)


def _of_containers(check: Callable[[str, Any], Any]) -> _Check:
    def checked(name: str, value: Any, entry: Mapping[str, Any]) -> Any:
        try:
            return check(name, value)
        except containers.Fault as fault:
            raise PolicyError(fault.where, fault.value, fault.allowed) from None

    return checked


def _date(name: str, value: Any) -> datetime.date:
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    if isinstance(value, str):
        try:
            return datetime.date.fromisoformat(value.strip())
        except ValueError:
            pass
    raise PolicyError(name, value, "a date, such as 2027-01-31")


_CHECKS: Mapping[str, _Check] = {
    "str": _text,
    "bool": _boolean,
    "int": _integer,
    "dict": _mapping,
    "list": _list,
    "gpu_driver_branch": _branch,
    "gpu_driver_version": _driver_version,
    "gpu_driver_module_options": _module_options,
    "gpu_mok_password": _secret,
    "gpu_toolkit_version": _version,
    "gpu_kernel_release": _release,
    "gpu_kernel_keep": _keep,
    "gpu_kernel_modules_waived": _module_names,
    "gpu_operator_version": _operator,
    "gpu_sharing": _of_containers(sharing.checked),
    "gpu_cuda": _cuda,
    "gpu_cuda_toolkit": _of_containers(cuda_wishes.toolkits),
    "gpu_cuda_toolkit_default": _of_containers(cuda_wishes.toolkit),
    "gpu_python_env": _of_containers(cuda_wishes.environment),
    "gpu_toolkit_repository": _repository,
    "gpu_proxy": _proxy,
    "gpu_fabricmanager_repository": _repository,
    "gpu_driver_repository": _repository,
    "gpu_container_runtime": _of_containers(containers.runtimes),
    "gpu_containerd_default_runtime": _runtime,
    "gpu_crio_default_runtime": _runtime,
    "gpu_docker_default_runtime": _runtime,
    "gpu_containerd_version": _version,
    "gpu_containerd_repository": _repository,
    "gpu_containerd_archive": _of_containers(containerd.archive),
    "gpu_containerd_sandbox_image": _of_containers(containerd.image),
    "gpu_containerd_registry_config_path": _of_containers(containerd.path),
    "gpu_containerd_registry_hosts": _of_containers(containerd.hosts),
    "gpu_toolkit_config": _of_containers(containers.config),
    "gpu_toolkit_offline": _of_containers(containers.offline),
    "gpu_driver_offline": _of_containers(offline.offline),
    "gpu_frameworks": _frameworks,
    "gpu_findings_waived": _waivers,
}
