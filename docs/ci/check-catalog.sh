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
  opmate catalog diff -o markdown -- "$released" "$directory" >catalog-diff.md || code=$?
  # 0: equal. 3: the catalogs differ. Any other code is an error.
  ((code == 0 || code == 3)) || exit "$code"
fi
if [[ -n $image ]]; then opmate catalog build "--tag=$image" -- "$directory"; fi
