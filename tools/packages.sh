# The packages that warploom needs on Debian and Ubuntu; sourced by demo and check. docs/install.md has Fedora's, too.
packages_build="cc:gcc cmake:cmake make:make lua5.4/lua.h:liblua5.4-dev sqlite3.h:libsqlite3-dev jansson.h:libjansson-dev zlib.h:zlib1g-dev lzma.h:liblzma-dev minizip/unzip.h:libminizip-dev xxhash.h:libxxhash-dev cmocka.h:libcmocka-dev"
packages_check="ninja:ninja-build clang-format:clang-format i18n/locales/de_DE:locales"
packages_all="clang:clang libclang_rt.fuzzer:libclang-rt-dev chromium:chromium gfortran:gfortran eigen3/Eigen/src/SparseCore/SparseMatrix.h:libeigen3-dev" # for ./check --all
packages_full="clang-tidy:clang-tidy cppcheck:cppcheck"
packages_packages="dpkg-shlibdeps:dpkg-dev rpmbuild:rpm pkg-config:pkg-config" # for tools/check_packages
packages_python="python3:python3 ensurepip:python3-venv Python.h:python3-dev" # for the Python package

# "thing:package": a header (with .h), a program or the source of a locale that is missing means the package is missing.
have() {
  case "$1" in
    ensurepip) python3 -c "import ensurepip" 2> /dev/null ;;
    Python.h) [ -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))' 2> /dev/null)/Python.h" ] ;;
    libclang_rt.*) [ -e "$(clang -print-file-name="$1-$(uname -m).a" 2> /dev/null)" ] ;;
    i18n/*) [ -e "/usr/share/$1" ] ;;
    *.h) [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ] || [ -e "/usr/include/${1##*/}" ] ;;
    *) command -v "$1" > /dev/null ;;
  esac
}

# Installs missing packages as root; otherwise prints what to run and exits with 2.
install_packages() {
  local entry missing=""
  for entry in $*; do have "${entry%%:*}" || missing="$missing ${entry##*:}"; done
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    echo "installing$missing"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing > /dev/null
  elif command -v apt-get > /dev/null; then
    echo "missing packages; run:  sudo apt-get install$missing" >&2
    exit 2
  else
    echo "missing packages, by their names on Debian:$missing; docs/install.md has Fedora's" >&2
    exit 2
  fi
}
