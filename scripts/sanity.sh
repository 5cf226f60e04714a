#!/usr/bin/env bash
# ansible-test sanity on what git knows of this checkout, as it will lie in ansible_collections/baremetal/nvidia.
# usage: scripts/sanity.sh [VENV] [argument of ansible-test sanity …]      (VENV: .venv or .venv-newest)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
venv=$(cd "${1:-.venv}" && pwd)
[ $# -gt 0 ] && shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/ansible_collections/baremetal/nvidia
mkdir -p "$tree"
git ls-files -z -- ':!collections' | while IFS= read -r -d '' file; do
    if [ -e "$file" ]; then printf '%s\0' "$file"; fi # deleted, not yet committed
done | tar --null -T - -c | tar -x -C "$tree"
cd "$tree"
git init -q
git add -A

# ansible-test makes its own environments and downloads pip for them; where that cannot be had, Python's own pip does.
"$venv/bin/python" - <<'PYTHON'
import pathlib, re, urllib.request
import ansible_test
text = (pathlib.Path(ansible_test.__file__).parent / "_internal" / "python_requirements.py").read_text()
for version in set(re.findall(r"""pip['"]?\s*[:=]\s*['"]([0-9][0-9.]*)['"]""", text)):
    cached = pathlib.Path(f"~/.ansible/test/cache/get_pip_{version.replace('.', '_')}.py").expanduser()
    if cached.exists():
        continue
    try:
        urllib.request.urlopen(f"https://ci-files.testing.ansible.com/ansible-test/get-pip-{version}.py", timeout=5).close()
    except OSError:
        cached.parent.mkdir(parents=True, exist_ok=True)
        cached.write_text("import ensurepip\nensurepip.bootstrap()\n")
PYTHON

PATH="$venv/bin:$PATH" ANSIBLE_COLLECTIONS_PATH="$work" \
    "$venv/bin/ansible-test" sanity --color no --python "$("$venv/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" "$@"
