#!/usr/bin/env bash
# Checks a catalog, writes the differences from the released one to catalog-diff.md, fails on changes that break clusters,
# and builds and pushes the image. A released image that does not exist yet is an empty catalog.
# usage: [OPENSHIFT=4.18] [FAIL_ON=error] [PROFILE=FILE] check-catalog.sh DIRECTORY [RELEASED [IMAGE]]
set -euo pipefail
directory=${1:?usage: check-catalog.sh DIRECTORY [RELEASED [IMAGE]]}
released=${2:-}
image=${3:-}

checks=("--fail-on=${FAIL_ON:-error}")
if [[ -n ${OPENSHIFT:-} ]]; then checks+=("--openshift=$OPENSHIFT"); fi
opmate catalog doctor "${checks[@]}" -- "$directory"
if [[ -n $released ]]; then
  code=0
  report=$(mktemp)
  opmate catalog diff --allow-missing -o markdown -- "$released" "$directory" >"$report" || code=$?
  # 0: equal. 3: the catalogs differ. Any other code is an error.
  ((code == 0 || code == 3)) || exit "$code"
  # The repository may have a link or directory of this name, which must not be written to.
  rm -rf -- catalog-diff.md
  mv -- "$report" catalog-diff.md
  gate=(--gate=breaking "--against=$released" --allow-missing)
  if [[ -n ${PROFILE:-} ]]; then gate+=("--profile=$PROFILE"); fi
  opmate catalog gate "${gate[@]}" -- "$directory"
fi
if [[ -n $image ]]; then opmate catalog build "--tag=$image" -- "$directory"; fi
