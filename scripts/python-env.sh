# Read by quickstart and test: finds a Python, makes the virtual environment, installs into it.
# Sets `root` (the repository) and `venv` (the environment).
# shellcheck shell=bash

# dozens of processes would compile all sources of Python anew
unset PYTHONDONTWRITEBYTECODE

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." >/dev/null && pwd -P) || exit 1
venv=${HPCGYM_VENV:-$root/.venv}
[[ $venv == /* ]] || venv=$PWD/$venv

die() {
    printf '%s\n' "$@" >&2
    exit 1
}

# Print the first Python >= 3.11 that can make virtual environments. Each is tried, not only looked
# for: a command of that name may be a stub that only says how to install it.
find_python() {
    local candidate unable=''
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
        if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
        unable=${unable:-$candidate}
    done
    if [[ $unable ]]; then
        die "$unable cannot make virtual environments: its venv module is missing." \
            "On Debian and Ubuntu: apt install python3-venv"
    fi
    die "hpcgym needs Python 3.11 or newer, which is not on the PATH." \
        "On Debian and Ubuntu: apt install python3 python3-venv; elsewhere: see python.org."
}

# Make the virtual environment, unless one that works is there.
make_venv() {
    local python
    if "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
            die "The Python of $venv is older than 3.11: remove that folder, and start again."
        return
    fi
    # what is no virtual environment is not ours to clear
    if [[ -e $venv && ! -e $venv/pyvenv.cfg ]] && ! rmdir "$venv" 2>/dev/null; then
        die "$venv is there already, and is no virtual environment: set HPCGYM_VENV to another."
    fi
    python=$(find_python) || exit 1
    echo "Making a virtual environment in $venv"
    "$python" -m venv --clear "$venv" || die "No virtual environment could be made in $venv."
}

# Install hpcgym as it stands in the repository with the extras $1, none if it is empty, unless that is
# done already.
install_hpcgym() {
    local extras=$1 done_before="$venv/.hpcgym-${1//,/-}" wanted
    make_venv
    wanted="$root $(cd "$root" && find pyproject.toml hpcgym/version.py native -name __pycache__ -prune -o -type f -print0 |
        LC_ALL=C sort -z | xargs -0 cat | cksum)"
    if [[ -r $done_before && $(<"$done_before") == "$wanted" ]]; then
        return
    fi
    SECONDS=0
    # Agents need PyTorch, of which one version is known to work, and the build for CPUs is enough:
    # the other is some gigabytes more. pip takes it from wherever it is set up to look.
    if [[ ,$extras, == *,agents,* || ,$extras, == *,all,* ]] &&
        ! "$venv/bin/python" -m pip show --quiet torch 2>/dev/null; then
        echo "Installing PyTorch: 200 MB of downloads for CPUs, some GB otherwise"
        run_pip torch==2.13.0
    fi
    echo "Installing hpcgym${extras:+[$extras]}: up to 150 MB are downloaded the first time, and the engine is compiled"
    run_pip --editable "$root${extras:+[$extras]}"
    printf '%s\n' "$wanted" >"$done_before"
    echo "Installed in $SECONDS s"
}

# Install packages into the virtual environment. Python compiles what is imported, and that takes half
# as long as to compile everything.
run_pip() {
    local log="$venv/pip.log"
    if ! "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --no-compile "$@" 2>&1 |
        tee "$log" | show_progress; then
        tail -n 20 "$log" >&2
        die "Installing failed; the whole output of pip is in $log."
    fi
}

# Show what pip is at in one line that changes; without a terminal, show nothing.
show_progress() {
    local line
    while IFS= read -r line; do
        if [[ -t 1 ]]; then printf '\r\033[K  %.70s' "${line#"${line%%[![:space:]]*}"}"; fi
    done
    if [[ -t 1 ]]; then printf '\r\033[K'; fi
}
