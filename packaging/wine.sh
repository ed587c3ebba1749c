#!/bin/sh
# Prepares Wine 10 in a private directory, from Debian's packages; nothing is installed. Older versions (8.0 of Debian 12)
# lack a library that programs of Rust need.
#
# usage: packaging/wine.sh DIR; then DIR/wine PROGRAM.exe
#
# The packages are those of Debian 13, with its C library beside them. They expect to be in /usr, so DIR/wine runs in a
# mount namespace whose root has this /usr, and all other directories of the machine. Without display and fonts: for
# programs of the command line.
set -eu
mkdir -p "$1"
directory=$(readlink -f "$1")
apt=$directory/apt root=$directory/root
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/packages" "$root"
: > "$apt/status"
cat > "$apt/debian.sources" <<EOT
Types: deb
URIs: http://deb.debian.org/debian
Suites: trixie
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
EOT
cat > "$apt/apt.conf" <<EOT
Dir::Etc::SourceList "$apt/debian.sources";
Dir::Etc::SourceParts "-";
Dir::State::Lists "$apt/lists";
Dir::State::Status "$apt/status";
Dir::Cache "$apt/cache";
APT::Sandbox::User "root";
APT::Architecture "amd64";
EOT
export APT_CONFIG="$apt/apt.conf"
apt-get update --quiet=2
(cd "$apt/packages" && apt-get download --quiet=2 libc6 libgcc-s1 liblzma5 libunwind8 zlib1g libz-mingw-w64 libwine wine64)
for package in "$apt"/packages/*.deb; do dpkg-deb --extract "$package" "$root"; done
rm -r "$apt" "$root/etc"
# Debian 13 has these links in a package that brings a whole system.
for name in bin lib lib64; do [ -e "$root/$name" ] || ln -s "usr/$name" "$root/$name"; done
# A desktop needs a display and fonts.
rm "$root/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/explorer.exe"
# In place of a script, which would need a shell.
ln -sf wineserver64 "$root/usr/lib/wine/wineserver"
cat > "$directory/wine" <<'EOT'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
export WINEPREFIX="${WINEPREFIX:-$here/prefix}" WINEDEBUG="${WINEDEBUG:--all}" WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe="
# The start of Windows has been prepared once, by wine.sh.
[ ! -e "$WINEPREFIX/prepared" ] || WINEDLLOVERRIDES="$WINEDLLOVERRIDES;wineboot.exe="
user="--user --map-root-user"
[ "$(id -u)" != 0 ] || user=
# shellcheck disable=SC2086
exec unshare $user --mount /bin/sh -c '
    root=$1
    shift
    for path in /*; do
        name=${path#/}
        case $name in usr|bin|sbin|lib*) continue ;; esac
        [ -d "$path" ] && mkdir -p "$root/$name" && mount --rbind "$path" "$root/$name"
    done
    exec unshare --root="$root" --wd="$PWD" /usr/lib/wine/wine64 "$@"
' sh "$here/root" "$@"
EOT
chmod +x "$directory/wine"
# A library that Wine looks for there.
mkdir -p "$directory/prefix/drive_c/windows/system32"
cp "$root/usr/x86_64-w64-mingw32/lib/zlib1.dll" "$directory/prefix/drive_c/windows/system32/"
"$directory/wine" cmd /c ver > /dev/null 2>&1
touch "$directory/prefix/prepared"
"$directory/wine" cmd /c ver
