# Shared by tools/quickstart and tools/check: messages, configuring, building.
# Sourced with the repository root as the working folder.
# shellcheck shell=bash

say() { printf '\n== %s\n' "$*"; }

fail() {
  printf '\n%s: error: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Compilers at once: one per core, but at most one per 1.5 GB of free memory,
# which is what a file with many MLIR headers takes.
build_jobs() {
  local cores kilobytes fitting
  cores=$(nproc)
  kilobytes=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
  fitting=$((kilobytes / 1500000))
  if ((fitting < 1)); then fitting=1; fi
  echo $((cores < fitting ? cores : fitting))
}

# Configures preset `release` in build/.
configure_release() {
  mkdir -p build
  if ! cmake --preset release >build/configure.log 2>&1; then
    tail -n 30 build/configure.log >&2
    fail "CMake cannot configure; all of its output is in build/configure.log"
  fi
  echo "preset release, in build/ (log: build/configure.log)"
}

# build_targets TARGET...: ninja's own progress, with the time so far.
build_targets() {
  local jobs
  jobs=$(build_jobs)
  echo "$*, $jobs at a time; the first build takes minutes"
  NINJA_STATUS='[%f/%t, %es] ' cmake --build build --target "$@" -j "$jobs" ||
    fail "the build of $* failed; the first error above says where"
}

# run_tests BUILD OPTION...: ctest, its exit status, and at the end a line for the
# tests that were skipped: they count as passed.
run_tests() {
  local status=0 log skipped
  log=$1/Testing/check.log
  ctest --test-dir "$1" --output-on-failure --no-tests=error \
    --output-log "$log" "${@:2}" || status=$?
  mapfile -t skipped < <(sed -nE 's/^[[:space:]]+[0-9]+ - (.*) \(Skipped\)$/\1/p' "$log")
  if ((${#skipped[@]} > 0)); then
    echo "${#skipped[@]} skipped: ${skipped[*]}"
  fi
  return "$status"
}
