#!/bin/sh
# check.sh BUILD [CXX]: installs a build folder, and builds and runs the examples with the installed files,
# in an otherwise empty folder. Their story must equal the installed program's. Then tests the sources as a
# part of another project, and the packages for other machines.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
build=$(CDPATH='' cd -- "$1" && pwd)
cxx=${2:-c++}
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
generator=$(cached CMAKE_GENERATOR) # not every machine has make
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { printf 'check.sh: %s\n' "$*" >&2 && exit 1; }
# none WHAT GREP-ARGUMENTS...: fails if a line of the input matches.
none() { what=$1 && shift && { ! grep "$@" || fail "$what"; }; }
# quietly COMMAND...: prints the output of a command only if it fails.
quietly() { "$@" >"$folder/log" 2>&1 || { cat "$folder/log" && fail "$*"; }; }

quietly cmake --install "$build" --prefix "$folder/staged"
mv "$folder/staged" "$folder/prefix" # a package may be unpacked anywhere
library=$(dirname "$(find "$folder/prefix" -name libpronk.a)")
mkdir "$folder/project"
cp "$here/CMakeLists.txt" "$here"/*.cc "$here"/*.c "$folder/project"
cd "$folder/project"
quietly cmake -B build -G "$generator" -DCMAKE_PREFIX_PATH="$folder/prefix" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Werror" -DCMAKE_CXX_COMPILER="$cxx"
quietly cmake --build build

beginning='Once upon a time'
model=$folder/prefix/share/pronk/default.gguf
"$folder/prefix/bin/pronk" run -m "$model" -p "$beginning" -n 100 --temp 0 >"$folder/expected"
# tells COMMAND...: succeeds if the command tells the expected story.
tells() {
  "$@" "$model" "$beginning" >"$folder/story"
  printf '\n' >>"$folder/story" # the program ends a text in a file with a line feed
  cmp "$folder/story" "$folder/expected"
}
tells build/story
cat "$folder/story"

# examples FOLDER: checks that a build's examples for C do what their comments say.
examples() {
  "$1/extraction" "$model" "Tom is nine years old." | python3 -c \
    'import json, sys; facts = json.load(sys.stdin); assert sorted(facts) == ["age", "name"], facts'
  [ "$("$1/embeddings" "$model" "a goat" "a goat")" = 1.000 ] || fail "a text is not close to itself"
  [ "$("$1/embeddings" "$model" "a goat" "It rained.")" != 1.000 ] || fail "all texts are the same"
}
examples build
printf 'Hello\nWhy?\n' | build/chat "$model" >"$folder/chat"
[ "$(grep -c . "$folder/chat")" -ge 2 ] || fail "chat: $(cat "$folder/chat")"
[ "$(build/batch "$model" "Once upon" "The goat" | grep -cE '^[01]: (Once upon|The goat)')" = 2 ] || fail "batch"
template='{{ tools }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ m.tool_calls }}{% endfor %}'
build/tools "$model" "Is it warm in Rome?" "$template" | grep -qE '^temperature\{"town": ?"(Rome|Oslo)"\}$' ||
  fail "tools calls nothing"

# A project in C alone uses the static library, by CMake and by pkg-config. Another project uses the shared
# library while a dependency of the static library is absent.
cc=$(cached CMAKE_C_COMPILER) && [ -n "$cc" ] || cc=cc
quietly cmake -B only-c -G "$generator" -DCMAKE_PREFIX_PATH="$folder/prefix" -DONLY_C=ON \
  -DCMAKE_C_FLAGS="-std=c99 -Wall -Wextra -Wpedantic -Werror"
quietly cmake --build only-c
examples only-c
cp -R "$folder/prefix" "$folder/lacking"
sed -i 's/sentencepiece=/absent-library=/' "$(find "$folder/lacking" -name pronkConfig.cmake)"
quietly cmake -B lacking -G "$generator" -DCMAKE_PREFIX_PATH="$folder/lacking" -DLINK=pronk::shared \
  -DONLY_C=ON
grep -q 'no pronk::engine' "$folder/log" || fail "nothing is said of an absent library"
quietly cmake --build lacking
examples lacking

# An invalid model is an error that the program can handle; it does not end the program.
status=0
build/story "$folder/log" x 2>"$folder/error" || status=$?
[ "$status" = 1 ] && grep '^story: ' "$folder/error"

# pkg-config finds the shared library, which exports only the symbols that its header declares.
if command -v pkg-config >/dev/null; then
  # shellcheck disable=SC2046  # a list of words
  "$cxx" -std=c++17 story.cc -o shared \
    $(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags --libs pronk)
  tells env LD_LIBRARY_PATH="$library" ./shared
  readelf -d shared | grep -q 'libpronk\.so\.[0-9]' || fail "no versioned soname"
  cp -R "$folder/prefix" "$folder/archive"
  find "$folder/archive" -name 'libpronk.so*' -exec rm {} +
  static=$(dirname "$(find "$folder/archive" -name libpronk.a)")
  mkdir archive
  for name in extraction embeddings; do
    # shellcheck disable=SC2046
    "$cc" -std=c99 $name.c -o archive/$name \
      $(PKG_CONFIG_PATH=$static/pkgconfig pkg-config --cflags --libs --static pronk)
  done
  examples archive
fi
nm -DC --defined-only "$library/libpronk.so" |
  none "symbols that are not the header's" -vE ' . (pronk_|pronk::|(typeinfo|typeinfo name|vtable) for pronk::Error)'

# The library exports each function of the header, too.
header=$folder/prefix/include/pronk/pronk_c.h
grep -oE '\bpronk_[a-z_]+\(' "$header" | tr -d '(' | sort -u >"$folder/declared"
nm -D --defined-only "$library/libpronk.so" | grep -oE '\bpronk_[a-z_]+$' | sort -u | diff "$folder/declared" - ||
  fail "the symbols for C are not the header's"
# The header for C++ declares each exported function that is not a constructor or destructor.
cat "$folder"/prefix/include/pronk/pronk.h >"$folder/cpp"
nm -DC --defined-only "$library/libpronk.so" | sed -nE 's/.* pronk::(([A-Za-z:]*)::)?([A-Za-z_]+)\(.*/\2 \3/p' |
  awk '$1 != $2 { print $NF }' | sort -u |
  while read -r name; do grep -qE "\b$name\(" "$folder/cpp" || printf '%s\n' "$name"; done |
  none "functions that the header does not declare" .

# The header of the library for C is valid C and C++. Python uses this library.
echo '#include <pronk/pronk_c.h>' |
  "$cxx" -x c++ -std=c++17 -pedantic -Wall -Wextra -Werror -I"$folder/prefix/include" -fsyntax-only -
for standard in c99 c11; do
  echo '#include <pronk/pronk.h>' |
    "$cxx" -x c -std=$standard -pedantic -Wall -Wextra -Werror -I"$folder/prefix/include" -fsyntax-only -
done
tells python3 "$here/story.py" "$library/libpronk.so"

# The tests above run with each compiler. The rest tests the build itself.
real() { readlink -f "$(command -v "$1")"; }
[ "$(real "$cxx")" = "$(real "$(cached CMAKE_CXX_COMPILER)")" ] || exit 0

# As a part of another project, pronk changes none of its flags and settings, and adds no tests, no
# installed files and few jobs. Building pronk again would take minutes, so only the project's own file is
# compiled, and linked with the library above.
highway=$(cached FETCHCONTENT_SOURCE_DIR_HIGHWAY)
[ -n "$highway" ] || [ ! -d "$build/highway-1.2.0" ] || highway=$build/highway-1.2.0
quietly cmake -B fetched -G "$generator" -DFETCH="$here" -DFETCHCONTENT_SOURCE_DIR_PRONK="$here/../.." \
  -DFETCHCONTENT_SOURCE_DIR_HIGHWAY="$highway" -DPRONK_TARGETS=native \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
jobs=$(grep -c '"command":' fetched/compile_commands.json)
[ "$jobs" -le 91 ] || fail "$jobs compile jobs"
grep '"command":.*story\.cc\.o' fetched/compile_commands.json | none "flags for the project" -E ' -(W|D|O|f)'
none "settings of the project" -E '^(HWY_|BUILD_|CPACK_|CTEST_)' fetched/CMakeCache.txt
grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=$' fetched/CMakeCache.txt || fail "CMAKE_BUILD_TYPE is forced"
ctest --test-dir fetched -N | grep -q '^Total Tests: 0' || fail "pronk's tests are the project's"
quietly cmake --install fetched --prefix "$folder/none"
[ ! -e "$folder/none" ] || fail "pronk's files are installed by the project"
if [ "$generator" = Ninja ]; then
  quietly ninja -C fetched CMakeFiles/story.dir/story.cc.o
  link=$(ninja -C fetched -t commands story | tail -n 1)
  archive=fetched/$(printf '%s\n' "$link" | grep -o '[^ ]*/libpronk\.a')
  cp "$library/libpronk.a" "$archive"
  (cd fetched && sh -c "$link")
  tells fetched/story
fi

# The packages' files need no library but libc, and the packages contain each library's licence.
quietly cpack --config "$build/CPackConfig.cmake" -B "$folder/packages"
none "a licence is missing" 'CMake Warning' <"$folder/log"
tar -C "$folder" -xzf "$folder"/packages/pronk-*.tar.gz --strip-components=1 --one-top-level=copied
libc='lib(c|m|dl|rt|pthread)\.so|ld-linux|linux-vdso'
env -i ldd "$folder/copied/bin/pronk" | none "more than libc" -vE "=> $folder/copied/|^[[:space:]]*(/.*/)?($libc)"
"$folder/copied/bin/pronk" run -m "$model" -p "$beginning" -n 100 --temp 0 | cmp - "$folder/expected"
for bin in "$folder/prefix/bin" "$folder/copied/bin"; do
  "$bin/pronk-pull" --help | grep -q OWNER/REPO || fail "no pronk-pull"
done
for library in "$folder"/copied/lib*/pronk/*; do
  [ -L "$library" ] && continue
  package=$(dpkg-query --search "*/$(uname -m)-linux-gnu/${library##*/}" | sed 's/[:,].*//;q')
  [ -s "$folder/copied/share/doc/pronk/licences/$package" ] || fail "no licence for $library"
done

# The launcher builds only the program. If `cmake --install` follows, one sentence says what to do.
sed 's|/libpronk\.a\"|/absent.a"|' "$build/engine/cmake_install.cmake" >"$folder/install.cmake"
cmake -DCMAKE_INSTALL_PREFIX="$folder/none" -P "$folder/install.cmake" >"$folder/log" 2>&1 || true
grep -q 'Not all is built' "$folder/log" || fail "no word on what is to be built"
