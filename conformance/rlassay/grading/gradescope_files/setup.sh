#!/usr/bin/env bash
# Run once by Gradescope, as root, when it builds the container: makes a Python that has torch and whatever else rlassay
# needs, in the versions of the machine where this archive was made. It lies where every user can read it; what is in
# this archive is for root alone.
set -euo pipefail
umask 022

source=${AUTOGRADER_ROOT:-/autograder}/source
venv=/opt/rlassay/venv
python=python$(< "$source/python-version")
export DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore

can_make_venv() {
    "$python" -c 'import ensurepip, venv' 2> /dev/null
}

get() {
    apt-get update -q && apt-get install -yq --no-install-recommends "$@"
}

if ! can_make_venv; then
    if ! { get software-properties-common && add-apt-repository -y ppa:deadsnakes/ppa; }; then
        echo "No Pythons but the system's own are to be had here; trying those."
    fi
    get "$python" "$python-venv"
fi
"$python" -m venv --clear "$venv"

install() {
    "$venv/bin/python" -m pip install --no-deps --only-binary :all: "$@"
}

if grep -q -e --index-url "$source/torch.txt"; then
    install -r "$source/torch.txt"
else  # a build for GPUs does not start without the packages that it asks for
    "$venv/bin/python" -m pip install --only-binary :all: -r "$source/torch.txt"
fi
install -r "$source/requirements.txt"
"$venv/bin/python" -m pip check

"$venv/bin/python" -m compileall -q "$source/packages"
PYTHONPATH=$source/packages "$venv/bin/python" -P -m rlassay --version
chmod -R go-rwx "$source"
