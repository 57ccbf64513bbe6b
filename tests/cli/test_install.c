/* The files of `cmake --install` are complete: the examples build against them by pkg-config and by find_package, and
 * the installed command runs. */
#include "support/command.h"
#include "support/test.h"

/* Runs a shell line in the folder and returns what it printed; free(). */
static char *shell(const char *line) {
  command c;
  char whole[4096];
  snprintf(whole, sizeof whole,
           "set -e; cd '%s'; export PKG_CONFIG_PATH=\"$(dirname \"$(find . -name warploom.pc)\")\"; %s", folder.path,
           line);
  command_start(&c, &folder, (const char *const[]){"/bin/sh", "-c", whole, NULL});
  command_wait(&c);
  if (c.code != 0) fail_msg("%s: exit code %d\n%s\n%s", line, c.code, c.out, c.err);
  char *out = strdup(c.out);
  return out;
}

static const char result[] = "7 70\n6 60\n", custom_result[] = "3 10\n2 0\n1.119 6.424\n0 0\n";
static const char attention_result[] = "0.58 31.22\n2.80 92.34\n2.63 274.39\n3.00 1000.00\n";

TEST(installs) {
  free(shell("cmake --install '" WLM_BINARY_DIR "' --prefix \"$PWD/prefix\""));
  FREED char *out = shell("./prefix/bin/warploom info --device host");
  assert_contains(out, wlm_version_string(), "prefix/bin/../share/warploom/system.db");
  free(out);
  out = shell("PATH=\"$PWD/prefix/bin:$PATH\"; warploom info --device host");
  assert_contains(out, "prefix/bin/../share/warploom/system.db");
  free(out);
  out = shell(
      "prefix/bin/warploom help man | cmp - prefix/share/man/man1/warploom.1; prefix/bin/warploom help bash | cmp - "
      "prefix/share/bash-completion/completions/warploom; prefix/bin/warploom help zsh | cmp - "
      "prefix/share/zsh/site-functions/_warploom");
  assert_string_equal(out, "");
}

/* The soname: a program linked to 0.3 runs with every 0.3.x and with no other version. */
TEST(states_its_version) {
  char name[64];
  free(shell("test -f prefix/include/warploom/warploom.h && test -f prefix/include/warploom/warploom_tune.h"));
  FREED char *out = shell(
      "ls \"$(dirname \"$(find prefix -name 'libwarploom.so')\")\"; sed -n 's/^Version: //p' $(find . -name "
      "warploom.pc)");
  snprintf(name, sizeof name, "libwarploom.so.%d.%d\n", WLM_VERSION_MAJOR, WLM_VERSION_MINOR);
  assert_contains(out, name);
  snprintf(name, sizeof name, "libwarploom.so.%s\n", wlm_version_string());
  assert_contains(out, name);
  snprintf(name, sizeof name, "\n%s\n", wlm_version_string());
  assert_contains(out, name);
}

TEST(builds_by_pkg_config) {
  if (system("command -v pkg-config > /dev/null")) {
    print_message("SKIPPED: no pkg-config\n");
    skip();
  }
#define BUILD_AND_RUN(example) \
  "cc -o example '" WLM_SOURCE_DIR "/examples/" example "' $(pkg-config --cflags --libs warploom) -lm -ldl; ./example"
  FREED char *out = shell(BUILD_AND_RUN("spmm.c"));
  assert_contains(out, result);
  free(out);
  out = shell("sed -n '/^```c$/,/^```$/{/^```/d;p}' '" WLM_SOURCE_DIR
              "/docs/learn-c.md' > first.c; "
              "cc -o first first.c $(pkg-config --cflags --libs warploom); ./first");
  assert_string_equal(out, "7 70\n6 60\n6 60\n6 60\n");
  free(out);
  out = shell(BUILD_AND_RUN("custom_op.c"));
  assert_contains(out, custom_result);
  free(out);
  out = shell(BUILD_AND_RUN("online.c"));
  assert_contains(out, " after 3000 calls, ", "c[0] = 6");
  free(out);
  out = shell(BUILD_AND_RUN("attention.c"));
  assert_contains(out, attention_result);
}

static int lacks(const char *what) {
  char line[256];
  snprintf(line, sizeof line, "command -v pkg-config > /dev/null && { [ -e '%s' ] || command -v '%s' > /dev/null; }",
           what, what);
  return system(line) != 0;
}

/* Programs of other languages and libraries, whose matrices are column-major or count from 1. */
TEST(solver_builds_by_pkg_config) {
  if (lacks("cc")) skip();
  FREED char *out = shell(BUILD_AND_RUN("cg.c"));
  assert_contains(out, "16 right-hand sides of 4096 unknowns: converged after ", "largest residual < 1e-6");
  assert_true(strstr(out, "cuSPARSE was not timed: it needs a GPU") || strstr(out, " us, by cuSPARSE "));
}

TEST(eigen_builds_by_pkg_config) {
  static const char folder_of_eigen[] = "/usr/include/eigen3";
  if (lacks(folder_of_eigen) || lacks("c++")) {
    print_message("SKIPPED: no Eigen (libeigen3-dev)\n");
    skip();
  }
  FREED char *out =
      shell("c++ -Wall -o eigen '" WLM_SOURCE_DIR
            "/examples/eigen.cpp' -I /usr/include/eigen3 $(pkg-config --cflags --libs warploom); ./eigen");
  assert_contains(out, "A * B   differs from Eigen by 0\nby CSC  differs from Eigen by 0\n");
}

TEST(fortran_builds_by_pkg_config) {
  if (lacks("gfortran")) {
    print_message("SKIPPED: no gfortran\n");
    skip();
  }
  FREED char *out = shell("gfortran -std=f2008 -Wall -Werror -J . -o fortran '" WLM_SOURCE_DIR
                          "/examples/spmm.f90' $(pkg-config --libs warploom); ./fortran");
  assert_contains(out, "    7.   70.\n    6.   60.\n");
}

/* warploom.pc names all that a program needs that links statically. */
TEST(private_libraries_are_complete) {
  FREED char *out = shell("cc -o static_example '" WLM_SOURCE_DIR
                          "/examples/spmm.c' -I prefix/include \"$(find prefix -name libwarploom.a)\" "
                          "$(sed -n 's/^Libs.private: //p' $(find . -name warploom.pc)); ./static_example");
  assert_contains(out, result);
}

/* The first C block of README compiles and links, with the variables that it takes from its reader. */
TEST(readme_builds_by_pkg_config) {
  if (system("command -v pkg-config > /dev/null")) {
    print_message("SKIPPED: no pkg-config\n");
    skip();
  }
  free(
      shell("awk '/^```/ { if (in_c) exit; in_c = /^```c$/; next } in_c' '" WLM_SOURCE_DIR "/README.md' > block; "
            "{ grep '^#include' block; echo '#include <stdint.h>'; "
            "echo 'void multiply(wlm_context *context, int64_t rows, int64_t cols, int64_t nnz, int64_t n, "
            "const int32_t *rowptr, const int32_t *colind, const float *values, const float *b, float *c, "
            "void *stream) {'; grep -v '^#include' block; echo '} int main(void) { return !multiply; }'; } > readme.c; "
            "grep -q wlm_spmm readme.c; "
            "cc -Wall -Werror -Wno-address -o readme readme.c $(pkg-config --cflags --libs warploom)"));
}

/* Builds a project of these languages; `program` is its source. */
static void build_in(const char *languages, const char *program) {
  char project[2048];
  snprintf(project, sizeof project,
           "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES %s)\n"
           "find_package(warploom 0.3 REQUIRED COMPONENTS static)\n"
           "add_executable(with_shared %s)\ntarget_link_libraries(with_shared warploom::warploom)\n"
           "add_executable(with_static %s)\ntarget_link_libraries(with_static warploom::static)\n",
           languages, program, program);
  write_whole(folder_file(&folder, "CMakeLists.txt"), project, strlen(project));
  free(shell("rm -rf user; cmake -S . -B user -DCMAKE_PREFIX_PATH=\"$PWD/prefix\" && cmake --build user"));
}

/* Links with both libraries of the package; the program linked statically does not need libwarploom.so. */
TEST(builds_by_find_package) {
  build_in("C", WLM_SOURCE_DIR "/examples/spmm.c");
  FREED char *out = shell("./user/with_shared; ldd user/with_shared | grep -c libwarploom");
  assert_contains(out, result);
  free(out);
  out = shell("./user/with_static; ldd user/with_static | grep -c libwarploom || true");
  assert_contains(out, result, "\n0\n");
}

TEST(builds_in_a_project_of_cpp_alone) {
  static const char program[] =
      "#include <cstdio>\n#include <warploom/warploom.h>\nint main() { std::puts(wlm_version_string()); }\n";
  write_whole(folder_file(&folder, "version.cpp"), program, strlen(program));
  build_in("CXX", "version.cpp");
  FREED char *out = shell("./user/with_shared; ./user/with_static");
  assert_contains(out, wlm_version_string());
}

/* A project that adds this one by add_subdirectory gets the library without its tests, whether or not it has tests
 * itself. */
TEST(builds_by_add_subdirectory) {
  static const char project[] =
      "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES C)\ninclude(CTest)\n"
      "add_subdirectory(" WLM_SOURCE_DIR
      " warploom)\n"
      "add_executable(user " WLM_SOURCE_DIR "/examples/spmm.c)\ntarget_link_libraries(user warploom::static)\n";
  write_whole(folder_file(&folder, "CMakeLists.txt"), project, strlen(project));
  FREED char *out =
      shell("cmake -S . -B outer > /dev/null && cmake --build outer --target help && ctest --test-dir outer -N");
  assert_contains(out, "warploom_static", "Total Tests: 0");
  assert_null(strstr(out, "test_support"));
}

TEST(configures_without_cmocka) {
  FREED char *out = shell("cmake -S '" WLM_SOURCE_DIR "' -B plain -DCMAKE_DISABLE_FIND_PACKAGE_cmocka=ON");
  assert_contains(out, "Tests: not built");
}

/* The shared library exports only what the public headers declare. */
TEST(hides_its_symbols) {
  FREED char *out = shell("nm -D --defined-only \"$(find prefix -name 'libwarploom.so')\" | sed 's/.* //'");
  assert_contains(out, "wlm_spmm");
  assert_null(strstr(out, "wlmi_generator_create"));
  assert_null(strstr(out, "wlmi_alloc\n"));
}

GROUP(home_begin, folder_end)
