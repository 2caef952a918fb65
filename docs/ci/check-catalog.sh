#!/usr/bin/env bash
# Validates a catalog, writes the differences from the released one to catalog-diff.md, and builds and pushes its image.
# usage: check-catalog.sh DIRECTORY [RELEASED [IMAGE]]
set -euo pipefail
directory=${1:?usage: check-catalog.sh DIRECTORY [RELEASED [IMAGE]]}
released=${2:-}
image=${3:-}

opmate validate -- "$directory"
if [[ -n $released ]]; then
  code=0
  report=$(mktemp)
  opmate catalog diff -o markdown -- "$released" "$directory" >"$report" || code=$?
  # 0: equal. 3: the catalogs differ. Any other code is an error.
  ((code == 0 || code == 3)) || exit "$code"
  # The repository may have a link or directory of this name, which must not be written to.
  rm -rf -- catalog-diff.md
  mv -- "$report" catalog-diff.md
fi
if [[ -n $image ]]; then opmate catalog build "--tag=$image" -- "$directory"; fi
