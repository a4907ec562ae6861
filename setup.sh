#!/usr/bin/env bash
# Creates the platform's environment if it is missing or out of date, then runs a command in it.
#
#   ./setup.sh start [OPTIONS]   start the platform ("platformctl serve")
#   ./setup.sh demo              see the main job done, in a throw-away instance
#   ./setup.sh test [ARGS]       run the tests ("pytest ARGS")
#   ./setup.sh docs [FOLDER]     build the documentation as a site to search, in FOLDER or .docs
#   ./setup.sh ANYTHING          "platformctl ANYTHING"
#   ./setup.sh --light COMMAND   the same, in an environment without torch and speech recognition: about 700 MB instead
#                                of 2.1 GB; it stays so until ./setup.sh --full COMMAND
#
# It needs Python 3.11 to 3.14 and a package index that pip can reach; PYTHON names an interpreter to use. The
# environment is .venv, made from requirements.lock. Running this again completes an unfinished one.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
venv="$here/.venv"
log="$venv/setup.log"

say() { printf '%s\n' "$*" >&2; }

die() {
    say "error: $1"
    [ $# -lt 2 ] || say "       $2"
    exit 1
}

# What an environment is made from, including the checkout's path: a moved environment does not work.
recipe() {
    printf '%s\n' "$here"
    if [ "$1" = docs ]; then
        cat "$here/requirements-docs.lock"
        return
    fi
    cat "$here/pyproject.toml"
    if [ "$1" = light ]; then
        cat "$here/requirements-light.lock"
        return
    fi
    cat "$here/requirements.lock"
    [ "$1" = runtime ] || cat "$here/requirements-dev.lock" "$here/requirements-data.lock"
}

is_ready() {
    [ -x "$venv/bin/python" ] && [ -f "$venv/made-for-$1" ] && recipe "$1" | cmp -s - "$venv/made-for-$1"
}

can_be_used() {
    "$1" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null
}

find_python() {
    local candidate
    if [ -n "${PYTHON:-}" ]; then
        can_be_used "$PYTHON" || die "PYTHON=$PYTHON is not a Python from 3.11 to 3.14 with its venv module"
        command -v "$PYTHON"
        return
    fi
    for candidate in python3.11 python3.12 python3.13 python3.14 python3 python; do
        if command -v "$candidate" >/dev/null && can_be_used "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    die "no usable Python from 3.11 to 3.14 was found" \
        "Install one with its venv module (Debian: apt install python3 python3-venv), or set PYTHON=/path/to/python."
}

# Shows pip's progress on one line of a terminal.
show_progress() {
    local total="$1" line count=0
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$log"
        [ -t 2 ] || continue
        case "$line" in
        Collecting* | "Requirement already satisfied"*)
            count=$((count + 1))
            line="${line#Collecting }"
            line="${line#Requirement already satisfied: }"
            printf '\r\033[K    %s of about %s: %s' "$count" "$total" "${line%% *}" >&2
            ;;
        "Installing collected packages"*) printf '\r\033[K    installing …' >&2 ;;
        esac
    done
    [ ! -t 2 ] || printf '\r\033[K' >&2
}

pip_install() {
    local total="$1"
    shift
    if ! "$venv/bin/python" -m pip --disable-pip-version-check install "$@" 2>>"$log" | show_progress "$total"; then
        say "The last lines of $log:"
        tail -n 15 "$log" >&2
        die "pip failed" "Repair what it names (is the package index reachable?) and run this again."
    fi
}

# An environment can be reused if its Python and pip work and it was made at this path.
make_venv() {
    if can_be_used "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1 &&
        grep -qF "$venv" "$venv/bin/activate"; then
        return
    fi
    say "• making $venv with $python"
    rm -rf "$venv"
    "$python" -m venv "$venv" || die "the environment could not be made" "Is the disk full?"
}

# A lock lists everything with its hashes, so pip must not resolve.
install_lock() {
    local lock="$1"
    shift
    pip_install "$(grep -c == "$lock")" --require-hashes --no-deps "$@" -r "$lock"
}

# A build of torch for the processor comes first, if an index or PIP_FIND_LINKS has one with a hash of the lock: pip would
# prefer the one for graphics cards, whose hash the index tells.
install_torch() {
    awk '/^[^ #]/ { ours = /^torch==/ } ours' "$here/requirements.lock" |
        sed 's/^torch==[^ ]*/&+cpu/' >"$venv/torch.lock"
    "$venv/bin/python" -m pip --disable-pip-version-check install --require-hashes --no-deps -r "$venv/torch.lock" \
        >>"$log" 2>&1 || true
}

# Otherwise the lock's other build is there, and needs several GB of libraries, which are in no lock.
complete_torch() {
    if grep -q '^torch==' "$here/requirements.lock" && ! "$venv/bin/python" -c 'import torch' 2>>"$log"; then
        say "  this build of torch needs libraries for graphics cards; PIP_EXTRA_INDEX_URL can name an index with another"
        pip_install 12 "$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' "$here/requirements.lock")"
    fi
}

# The build tools are needed for a moment: they go to a folder beside the environment's packages, and are removed.
install_platform() {
    rm -rf "$venv/build"
    install_lock "$here/requirements-build.lock" --target "$venv/build"
    PYTHONPATH="$venv/build" pip_install 1 --no-deps --no-build-isolation --no-index -e "$here"
    rm -rf "$venv/build"
}

install() {
    local kind="$1" lock="$here/requirements.lock"
    make_venv
    rm -f "$venv/made-for-"*
    : >"$log"
    case "$kind" in
    light)
        install_light
        return
        ;;
    docs)
        install_lock "$here/requirements-docs.lock"
        recipe docs >"$venv/made-for-docs"
        return
        ;;
    esac
    [ "$kind" = runtime ] || lock="$here/requirements-dev.lock"
    say "• 1 of 2: everything in $(basename "$lock")"
    install_torch
    install_lock "$lock"
    complete_torch
    [ "$kind" = runtime ] || install_lock "$here/requirements-data.lock"
    say "• 2 of 2: the platform itself"
    install_platform
    [ "$kind" = runtime ] || recipe runtime >"$venv/made-for-runtime"
    recipe "$kind" >"$venv/made-for-$kind"
    say "• the environment is ready"
}

install_light() {
    say "• 1 of 2: everything in requirements-light.lock"
    install_lock "$here/requirements-light.lock" --no-compile
    # 60 MB of OpenVINO for graphics cards and neural processors: the engine uses only the CPU.
    rm -f "$venv"/lib/python*/site-packages/openvino/libs/{libopenvino_intel_gpu_plugin.so,libopenvino_intel_npu_plugin.so,cache.json}
    say "• 2 of 2: the platform itself"
    install_platform
    # Installed by `python -m venv` before 3.12, and not needed here: 9 MB.
    "$venv/bin/python" -m pip --disable-pip-version-check uninstall -qy setuptools >>"$log" 2>&1 || true
    recipe light >"$venv/made-for-light"
    say "• the light environment is ready"
}

# A lock held by file descriptor 9 until it is closed; flock(1) is not available everywhere.
lock_setup() {
    exec 9<"$here/setup.sh"
    if ! "$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)' 2>/dev/null; then
        say "• waiting for another setup to finish"
        "$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
    fi
}

prepare() {
    is_ready "$1" && return
    python="$(find_python)"
    lock_setup
    is_ready "$1" || install "$1"
    exec 9<&-
}

# A light environment stays light until a full one is requested; a full one also serves as a light one.
kind=runtime
case "${1:-}" in
--light)
    shift
    kind=light
    ! is_ready runtime || kind=runtime
    ;;
--full) shift ;;
*) [ ! -e "$venv/made-for-light" ] || kind=light ;;
esac
command="${1:-}"
[ $# -eq 0 ] || shift
case "$command" in
start) set -- serve "$@" ;;
"") set -- --help ;;
test) ;;
*) set -- "$command" "$@" ;;
esac

if [ "$command" = test ]; then
    prepare dev
    cd "$here"
    # Hundreds of processes start, and each would compile all modules again.
    unset PYTHONDONTWRITEBYTECODE
    # A file's tests stay in one process, as many share one platform. Four processes open up to 80 PostgreSQL connections at once,
    # and a server allows 100 by default.
    exec "$venv/bin/python" -m pytest -n auto --maxprocesses 4 --max-worker-restart 0 --dist loadfile --no-loadscope-reorder \
        "$@"
fi
if [ "$command" = docs ]; then
    venv="$here/.venv-docs"
    log="$venv/setup.log"
    prepare docs
    target="${2:-$here/.docs}"
    "$venv/bin/python" -m sphinx --quiet --fail-on-warning --keep-going -b html -c "$here/docs" "$here" "$target"
    say "• the documentation is in $target: open docs/README.html there"
    exit
fi
prepare "$kind"
# One home and one manifests folder for every command, wherever it is called from.
export PLATFORM_HOME="${PLATFORM_HOME:-$here/.platform}"
export PLATFORM_MANIFESTS_DIR="${PLATFORM_MANIFESTS_DIR:-$here/manifests}"
export PLATFORM_COMMAND="${PLATFORM_COMMAND:-${BASH_SOURCE[0]}}"
exec "$venv/bin/python" -P -m cli "$@"
