#!/bin/sh
# check.sh BUILD [CXX]: installs what a build folder holds, and builds and runs the example against that,
# in a folder with nothing else in it. The story has to be that of the installed program.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
build=$1
generator=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$build/CMakeCache.txt") # not every machine has make
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$build" --prefix "$folder/staged" >"$folder/log"
mv "$folder/staged" "$folder/prefix" # a package may be unpacked anywhere
mkdir "$folder/project" "$folder/project/build"
cp "$here/CMakeLists.txt" "$here/story.cc" "$folder/project"

cd "$folder/project/build"
cmake .. -G "$generator" -DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Werror" \
  ${2:+-DCMAKE_CXX_COMPILER="$2"} >"$folder/log" || { cat "$folder/log" && exit 1; }
cmake --build . >"$folder/log" || { cat "$folder/log" && exit 1; }

beginning='Once upon a time'
model=$folder/prefix/share/pronk/default.gguf
./story "$model" "$beginning" >"$folder/story"
"$folder/prefix/bin/pronk" run -m "$model" -p "$beginning" -n 100 --temp 0 >"$folder/expected"
printf '\n' >>"$folder/story" # a line ends where nobody reads along
cmp "$folder/story" "$folder/expected"
cat "$folder/story"

# A file that is none is an error of the library, not the end of the program.
status=0
./story "$folder/log" x 2>"$folder/error" || status=$?
[ "$status" = 1 ] && grep '^story: ' "$folder/error"
