#!/bin/bash
# Stands in for public images where packages of Debian can be had and images cannot:
#
#   debian.sh NAME        makes NAME/postgres, NAME/redis, NAME/python and NAME/python-build (the same, and `strip`)
#
# Packages are unpacked into a folder and not installed, so nothing of this machine changes, and no root is needed.
set -euo pipefail

name=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/packages"

tools="dash coreutils findutils grep sed util-linux"

# The libraries that these packages depend on. Those of Perl and LLVM are left out: for scripts of the distribution, and
# for a compiler inside PostgreSQL, that nobody calls here.
libraries_of() {
  apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "$@" |
    grep -E '^(lib|zlib)[^:]*$' | grep -v -E 'perl|llvm|debconf' | sort -u
}

latest() { # the package of a version that a package without one stands for: postgresql -> postgresql-15
  apt-cache depends "$1" | sed -n "s/^ *\(Pre\)\?Depends: \($2\)$/\2/p" | head -n 1
}

# An empty root with what a shell and its tools need to run, and then these packages.
root_of() { # folder, packages...
  local root=$1 package
  shift
  mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root"/{etc,proc,sys,dev,tmp,run,root,var/lib}
  ln -s usr/bin "$root/bin"
  ln -s usr/sbin "$root/sbin"
  ln -s usr/lib "$root/lib"
  ln -s usr/lib64 "$root/lib64"
  ln -s ../run "$root/var/run"
  chmod 1777 "$root/tmp"
  (cd "$work/packages" && for package in "$@"; do
    compgen -G "${package}_*.deb" > /dev/null || echo "$package"
  done | xargs --no-run-if-empty apt-get -o APT::Sandbox::User=root -qq download)
  for package in "$@"; do
    dpkg-deb --fsys-tarfile "$work/packages/${package}"_*.deb |
      tar -x --directory "$root" --keep-directory-symlink --no-same-owner
  done
  ln -sf dash "$root/usr/bin/sh"
  rm -rf "$root"/usr/share/{doc,man,info,locale,lintian,bash-completion,bug,perl5,doc-base}
  printf '%s\n' root:x:0:0:root:/:/bin/sh postgres:x:70:70::/var/lib/postgresql:/bin/sh redis:x:71:71::/data:/bin/sh \
    nobody:x:65534:65534::/:/bin/false > "$root/etc/passwd"
  printf '%s\n' root:x:0: postgres:x:70: redis:x:71: nogroup:x:65534: > "$root/etc/group"
  echo 'hosts: files dns' > "$root/etc/nsswitch.conf"
}

image() { # name, folder, changes...
  local tag=$1 root=$2 changes=() change
  shift 2
  for change in "$@"; do changes+=(--change "$change"); done
  tar -c --directory "$root" --owner=0 --group=0 --numeric-owner . | docker import "${changes[@]}" - "$tag" > /dev/null
  echo "made $tag"
}

postgres=$(latest postgresql 'postgresql-[0-9]*')
version=${postgres#postgresql-}
# shellcheck disable=SC2046,SC2086  # lists of words
root_of "$work/postgres" $tools libc-bin tzdata "$postgres" "postgresql-client-$version" \
  $(libraries_of $tools libc6 "$postgres" "postgresql-client-$version")
rm -rf "$work/postgres/usr/lib/postgresql/$version/lib/"{bitcode,llvmjit*,pgxs}
mkdir -p "$work/postgres/var/lib/postgresql/data"
install -m 755 "$here/postgres-entrypoint.sh" "$work/postgres/usr/bin/docker-entrypoint.sh"
image "$name/postgres" "$work/postgres" \
  "ENV PATH=/usr/lib/postgresql/$version/bin:/usr/sbin:/usr/bin" 'ENV PGDATA=/var/lib/postgresql/data' \
  'ENV LANG=C.UTF-8' 'VOLUME /var/lib/postgresql/data' 'EXPOSE 5432' \
  'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["postgres"]'
# An import takes no such change. PostgreSQL's SIGTERM waits for clients to leave.
printf 'FROM %s\nSTOPSIGNAL SIGINT\n' "$name/postgres" | docker build --quiet --tag "$name/postgres" - > /dev/null

# shellcheck disable=SC2046,SC2086
root_of "$work/redis" $tools redis-server redis-tools $(libraries_of $tools libc6 redis-server redis-tools)
mkdir "$work/redis/data"
install -m 755 "$here/redis-entrypoint.sh" "$work/redis/usr/bin/docker-entrypoint.sh"
image "$name/redis" "$work/redis" \
  'ENV PATH=/usr/sbin:/usr/bin' 'VOLUME /data' 'WORKDIR /data' 'EXPOSE 6379' \
  'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["redis-server"]'

python=$(latest python3-minimal 'python3\.[0-9]*-minimal')
python=${python%-minimal}
python_packages="python3-minimal $python $python-minimal $python-venv python3-pip-whl python3-setuptools-whl"
# shellcheck disable=SC2046,SC2086
root_of "$work/python" $tools ca-certificates $python_packages $(libraries_of $tools libc6 libstdc++6 $python_packages)
mkdir -p "$work/python/etc/ssl/certs"
cat "$work"/python/usr/share/ca-certificates/mozilla/*.crt > "$work/python/etc/ssl/certs/ca-certificates.crt"
image "$name/python" "$work/python" 'ENV PATH=/usr/sbin:/usr/bin' 'ENV LANG=C.UTF-8' 'CMD ["python3"]'

# shellcheck disable=SC2046
root_of "$work/more" binutils "$(latest binutils 'binutils-.*-linux-gnu')" $(libraries_of binutils)
cp -a --no-clobber "$work/more/usr/." "$work/python/usr/"
image "$name/python-build" "$work/python" 'ENV PATH=/usr/sbin:/usr/bin' 'ENV LANG=C.UTF-8' 'CMD ["python3"]'
