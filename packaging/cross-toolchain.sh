#!/bin/sh
# Prepares a compiler that builds the standard library itself, for targets whose standard library cannot be downloaded
# (`rustup target add` is the usual way where it can). Everything comes from Debian's packages, and is unpacked into a
# private directory: nothing is installed.
#
# usage: packaging/cross-toolchain.sh DIR; then CROSS_TOOLCHAIN=DIR make dist. `make test-targets` runs it by itself.
set -eu
directory=$1
mkdir -p "$directory/packages"
# A new machine has no lists of packages, and an old list may name a compiler that is too old.
apt-get update --quiet=2
depends() { apt-cache depends "$1" | sed -n "s/.*Depends: \\($2\\)\$/\\1/p" | head -n 1; }
std=$(depends libstd-rust-web-dev 'libstd-rust-web-[0-9.]*')
llvm=$(depends "$std" 'libllvm[0-9]*')
(cd "$directory/packages" && apt-get download --quiet rustc-web rust-web-src libstd-rust-web-dev "$std" "$llvm")
for package in "$directory"/packages/*.deb; do dpkg-deb --extract "$package" "$directory"; done
rm -r "$directory/packages"
cat > "$directory/rustc" <<'EOF'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH="$(dirname "$(find "$here/usr/lib" -name 'librustc_driver-*.so' -print -quit)")" exec "$here/usr/bin/rustc" "$@"
EOF
chmod +x "$directory/rustc"
"$directory/rustc" --version
