/* The shared library exports exactly the functions that the public headers declare. */
#include "support/header.h"
#include "support/test.h"

static int is_declared(const header_functions *functions, const char *name) {
  for (int i = 0; i < functions->count; i++)
    if (!strcmp(functions->names[i], name)) return 1;
  return 0;
}

TEST(headers_are_read) {
  static const char *const some[] = {"wlm_error_detail", "wlm_spmm", "wlm_set_device_allocator",
                                     "wlm_plan_create_online", "wlm_online_state_init"};
  header_functions functions;
  header_read(WLM_SOURCE_DIR, &functions);
  assert_in_range(functions.count, 40, 100);
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) assert_true(is_declared(&functions, some[i]));
  for (int i = 0; i < functions.count; i++) {
    assert_memory_equal(functions.names[i], "wlm_", 4);
    if (i) assert_string_not_equal(functions.names[i], functions.names[i - 1]);
  }
}

TEST(exports_what_is_declared) {
#ifdef WLM_SHARED_LIBRARY
  header_functions functions;
  int exported = 0, faults = 0;
  char line[512], type;
  char name[256];
  if (system("nm --version >/dev/null 2>&1")) test_missing("nm", "nm", "the exported symbols were not checked");
  header_read(WLM_SOURCE_DIR, &functions);
  FILE *symbols = popen("nm -D --defined-only '" WLM_SHARED_LIBRARY "'", "r");
  assert_non_null(symbols);
  while (fgets(line, sizeof line, symbols)) {
    assert_int_equal(sscanf(line, "%*x %c %255s", &type, name), 2);
    name[strcspn(name, "@")] = 0;
    if (name[0] == '_') continue; /* symbols of the compiler, the linker and sanitizers begin with an underscore */
    exported++;
    if (type == 'T' && is_declared(&functions, name)) continue;
    faults++;
    print_error("%s (%c) is exported, and no public header declares it\n", name, type);
  }
  assert_int_equal(pclose(symbols), 0);
  print_message("%d functions declared, %d symbols exported\n", functions.count, exported);
  assert_int_equal(faults, 0);
  assert_int_equal(exported, functions.count); /* each declared function has exactly one symbol */
#else
  test_missing("shared_library", "shared library", "this build has a static one only");
#endif
}

/* Templates must not reach files, processes and libraries. */
TEST(opens_no_dangerous_lua_library) {
#ifdef WLM_SHARED_LIBRARY
  static const char *const forbidden[] = {"luaopen_package", "luaopen_io", "luaopen_os", "luaopen_debug",
                                          "luaL_openlibs"};
  char line[512];
  int lua_calls = 0;
  if (system("nm --version >/dev/null 2>&1")) test_missing("nm", "nm", "the symbols of Lua were not checked");
  FILE *symbols = popen("nm -D --undefined-only '" WLM_SHARED_LIBRARY "'", "r");
  assert_non_null(symbols);
  while (fgets(line, sizeof line, symbols)) {
    lua_calls += strstr(line, " lua_") != NULL;
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
      if (strstr(line, forbidden[i])) fail_msg("the library uses%s", strstr(line, " U ") + 2);
  }
  assert_int_equal(pclose(symbols), 0);
  assert_true(lua_calls > 10);
#else
  test_missing("shared_library", "shared library", "this build has a static one only");
#endif
}
