#!/bin/bash
# Applies the worked patches of CONTRIBUTING.md and LAB.md to a copy of the tree, builds it, and runs
# the checks that each patch names in its first lines. So the patches cannot grow stale.
#
#   tests/patches/check.sh [-DCMAKE-OPTION...] [PATCH...]        without patches: all of them
#
# The patches of this folder are applied together, which takes one build. After their checks, the programs
# that these name run all tests that were compiled: a patch must keep the others green. Each patch of lab/
# is then applied on top, built, checked and reversed. A patch must also apply to the tree as it is. The
# copy is build-patches/source, its build build-patches/build. The first lines of a patch:
#
#   # tests: FILES...            the files of tests/ that the checks need (ops_test sampler_test);
#                                others are not compiled
#   # run: COMMAND               before the build, in the copy
#   # check: PROGRAM ARGS...     must succeed, and run a test if it is one
#   # fails: PROGRAM ARGS...     must fail
set -euo pipefail
cd "$(dirname "$0")/../.."

python3 -c 'import numpy' 2>/dev/null || PATH=/usr/bin:$PATH # the system's python3 has it
jobs=$(nproc)
copy=$PWD/build-patches/source
build=$PWD/build-patches/build
log=$PWD/build-patches/log
options=()
patches=()
for argument; do
  case $argument in
    -D*) options+=("$argument") ;;
    *) patches+=("$(realpath "$argument")") ;;
  esac
done
[ "${#patches[@]}" -gt 0 ] || patches=("$PWD"/tests/patches/*.patch "$PWD"/tests/patches/lab/*.patch)
[ ! -d build/highway-1.2.0 ] || options+=("-DFETCHCONTENT_SOURCE_DIR_HIGHWAY=$PWD/build/highway-1.2.0")

# fail PATCH WHAT (or PROGRAM WHAT): says what went wrong and shows the end of the log.
fail() {
  tail -n 60 "$log"
  echo "$(name_of "$1"): FAILED: $2"
  exit 1
}

name_of() { echo "${1#"$PWD"/tests/patches/}"; }

# lines KEY PATCH...: what the patches' first lines "# KEY: ..." say.
lines() { awk -v "key=$1" 'FNR == 1 { head = 1 } /^diff / { head = 0 } head && sub("^# " key ": ", "")' "${@:2}"; }

# apply PATCH [-R]
apply() { patch -d "$copy" -p1 --force --fuzz=3 --no-backup-if-mismatch "${@:2}" <"$1" >"$log" 2>&1; }

# configure: with the test files that the patches need.
configure() {
  local files
  files=$(lines tests "${patches[@]}" | tr ' ' '\n' | sort -u)
  # One instruction set, and no optimization that the checks do not need.
  cmake -S "$copy" -B "$build" -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG" -DCMAKE_CXX_FLAGS=-DHWY_COMPILE_ONLY_STATIC -DPRONK_TARGETS=native \
    "-DPRONK_TEST_FILES=${files//$'\n'/|}" "${options[@]}" >"$log" 2>&1
}

# prepare PATCHES...: runs their commands and builds what they need.
prepare() {
  local command patch targets
  for patch; do
    while read -r command; do
      (cd "$copy" && bash -euc "$command") >"$log" 2>&1 </dev/null || fail "$patch" "$command"
    done < <(lines run "$patch")
  done
  mapfile -t targets < <(lines '(check|fails)' "$@" | cut -d ' ' -f 1 | sort -u)
  cmake --build "$build" --parallel "$jobs" --target "${targets[@]}" >"$log" 2>&1 || fail "$1" "the build"
}

# check PATCH: runs its checks and prints its line.
check() {
  local kind command n=0 result
  for kind in check fails; do
    while read -r command; do
      result=check
      (cd "$copy" && eval "$build/bin/$command") >"$log" 2>&1 </dev/null || result=fails
      [ "$result" = "$kind" ] || fail "$1" "$kind: $command"
      ! grep -q '^\[==========\] 0 tests ' "$log" || fail "$1" "$command runs no test"
      n=$((n + 1))
    done < <(lines "$kind" "$1")
  done
  [ "$n" -gt 0 ] || fail "$1" "it names no check"
  echo "$(name_of "$1"): $n passed"
}

# check_all PROGRAM: runs all of its tests.
check_all() {
  (cd "$copy" && "$build/bin/$1") >"$log" 2>&1 </dev/null || fail "$1" "with all of these patches"
  echo "$1: $(grep -c '^\[       OK' "$log") passed"
}

rm -rf build-patches
mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - | tar -x -C "$copy"
ln -s source/models build-patches/models # where the built program looks for the included model

together=()
for patch in "${patches[@]}"; do
  git apply --check "$patch" 2>"$log" || fail "$patch" "it does not apply to the tree"
  [[ $patch == */lab/* ]] || together+=("$patch")
done
for patch in "${together[@]}"; do apply "$patch" || fail "$patch" "it does not apply with the others"; done
configure || fail "${patches[0]}" "cmake"
if [ "${#together[@]}" -gt 0 ]; then
  prepare "${together[@]}"
  for patch in "${together[@]}"; do check "$patch"; done
  for program in $(lines check "${together[@]}" | cut -d ' ' -f 1 | sort -u); do check_all "$program"; done
fi
for patch in "${patches[@]}"; do
  [[ $patch == */lab/* ]] || continue
  apply "$patch" || fail "$patch" "it does not apply with the others"
  prepare "$patch"
  check "$patch"
  apply "$patch" -R || fail "$patch" "it cannot be reversed"
done
