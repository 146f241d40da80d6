# The Debian packages that building and testing need, and their installation.
# Sourced after steps.sh.
# shellcheck shell=bash

packages=(
  # MLIR, LLVM, their command-line tools (lit and FileCheck too), the linker
  llvm-22-dev libmlir-22-dev mlir-22-tools llvm-22-tools lld-22
  # libraries of ours, and what LLVM's archives want
  libfmt-dev catch2 libcli11-dev nlohmann-json3-dev libboost-context-dev
  libxxhash-dev
  zlib1g-dev libzstd-dev libxml2-dev
  # building
  cmake ninja-build g++ ccache python3 python3-setuptools python3-venv pkgconf
)

# Prints those of `packages` that are not installed.
missing_packages() {
  local package
  for package in "${packages[@]}"; do
    if [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
      echo "$package"
    fi
  done
}

# apt_get ARGUMENTS: quiet, never asks, waits for another apt; fails aloud.
apt_get() {
  local log
  log=$(mktemp)
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -y -o DPkg::Lock::Timeout=120 "$@" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    fail "'apt-get $1' failed; its last lines are above"
  fi
  rm -f "$log"
}

# Installs what is missing; touches nothing where all is there.
install_packages() {
  local missing package policy
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    fail "this script installs with apt-get, which is not here; install by other" \
      "means what tools/lib/packages.sh lists, then run: cmake --preset release"
  fi
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then
    echo "all ${#packages[@]} packages are installed"
    return
  fi

  as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      fail "these packages are missing, and installing them needs root or sudo:" \
        "${missing[*]}"
    as_root=(sudo)
  fi
  echo "apt-get update"
  apt_get update
  for package in "${missing[@]}"; do
    # A package that apt knows by name only has the candidate "(none)".
    policy=$(LC_ALL=C apt-cache policy "$package")
    if [[ ! $policy =~ Candidate:\ [^\(] ]]; then
      fail "apt has no package $package for this system; Debian 12 has it" \
        "(the LLVM 22 packages in bookworm-security): see /etc/apt/sources.list"
    fi
  done
  echo "apt-get install ${missing[*]}"
  apt_get install --no-install-recommends "${missing[@]}"
}
