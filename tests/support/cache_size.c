/* The last-level cache that the host device finds in tests. Tuning overwrites twice its size before each cold time, and
 * some machines report hundreds of megabytes. The linker's --wrap renames calls of sysconf to __wrap_sysconf. */
#include <unistd.h>

long __wrap_sysconf(int name);
long __real_sysconf(int name);

long __wrap_sysconf(int name) { return name == _SC_LEVEL3_CACHE_SIZE ? 4 << 20 : __real_sysconf(name); }
