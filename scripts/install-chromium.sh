#!/bin/sh
# Installs Debian's Chromium and its driver for `pytest -m browser`; does nothing where they exist or
# cannot be had. Without them the browser tests skip with the reason.
set -eu

if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
    echo "chromium and chromedriver are already installed"
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "no apt-get here: install chromium and chromedriver by hand to run the browser tests"
    exit 0
fi
if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null; then
    as_root="sudo"
else
    echo "not root and no sudo: install chromium and chromium-driver by hand to run the browser tests"
    exit 0
fi

export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q
$as_root apt-get install -y -q --no-install-recommends chromium chromium-driver fonts-dejavu-core
