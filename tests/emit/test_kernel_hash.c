/* The hash by which measurements name a kernel: it changes with what the kernel consists of, and with nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "generator/kernel_hash.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/host/compiler.h"
#include "support/covering.h"
#include "support/emit_fixture.h"
#include "support/require.h"

enum { CUDA, HOST, TARGETS };
static const wlmi_limits *const targets[TARGETS] = {&emit_cuda, &emit_host};
static covering sets[TARGETS];

/* ---- small texts ------------------------------------------------------------------------------------------- */

static char *kept_of(const wlmi_program *program) {
  wlmi_text text = {0};
  char *kept;
  assert_status(WLM_OK, wlmi_kernel_text(program, &text));
  assert_status(WLM_OK, wlmi_text_take(&text, &kept));
  return kept;
}

static void assert_kept(const char *source, const char *expected) {
  const wlmi_program program = {.source = (char *)source, .pass_count = 1, .passes = {{.kernel = "pass"}}};
  char *kept = kept_of(&program);
  assert_string_equal(kept ? kept : "", expected);
  wlmi_free(kept);
}

static void used_declarations_are_kept(void **state) {
  (void)state;
  assert_kept("KERNEL(k) { f(); }", "KERNEL(k) { f(); }\n");
  assert_kept(
      "static int f(int x) { return g(x); }\nstatic int g(int x);\nstatic int h(int x) { return f(x); }\n"
      "KERNEL(k) { f(1); }",
      "static int f(int x) { return g(x); }\nstatic int g(int x);\nKERNEL(k) { f(1); }\n");
  assert_kept("struct a { int x; };\nstruct b { struct a y; };\nstruct c { int z; };\nKERNEL(k) { struct b b; }",
              "struct a { int x; };\nstruct b { struct a y; };\nKERNEL(k) { struct b b; }\n");
  assert_kept(
      "enum { ONE = 1, TWO };\nenum { THREE };\ntypedef int number;\ntypedef float other;\n"
      "typedef struct { int x; } pair;\nKERNEL(k) { number x = TWO; pair p; }",
      "enum { ONE = 1, TWO };\ntypedef int number;\ntypedef struct { int x; } pair;\n"
      "KERNEL(k) { number x = TWO; pair p; }\n");
  assert_kept(
      "static const int table[2] = {1, 2}, unused = 3;\nstatic const int other[] = {4};\n"
      "KERNEL(k) { return table[0]; }",
      "static const int table[2] = {1, 2}, unused = 3;\nKERNEL(k) { return table[0]; }\n");
  assert_kept("#define F(x) \\\n  g(x)\n#define UNUSED 1\nstatic void g(int x) {}\nKERNEL(k) { F(1); }",
              "#define F(x) g(x)\nstatic void g(int x) {}\nKERNEL(k) { F(1); }\n");
  /* a kernel without a macro, by its name; a macro that a declaration defines */
  assert_kept("void other(void) {\n#define X 1\n}\nvoid third(void) {}\nvoid pass(int x) { x = X; }",
              "void other(void) {\n#define X 1\n}\nvoid pass(int x) { x = X; }\n");
  /* what an unknown macro declares is not known */
  assert_kept("#define MAKE(x) void x##_of(int);\nMAKE(sine)\nstatic void g(void) {}\nKERNEL(k) { sine_of(1); }",
              "#define MAKE(x) void x##_of(int);\nMAKE(sine) static void g(void) {}\nKERNEL(k) { sine_of(1); }\n");
}

static void conditions_around_what_is_kept_are_kept(void **state) {
  (void)state;
  assert_kept(
      "#ifdef A\nint f(void) { return 1; }\n#else\nint f(void) { return 2; }\n#endif\n"
      "#ifdef B\n#if C\nint g(void) { return 1; }\n#endif\n#endif\nKERNEL(k) { f(); }",
      "#ifdef A\nint f(void) { return 1; }\n#else\nint f(void) { return 2; }\n#endif\nKERNEL(k) { f(); }\n");
  assert_kept(
      "#define C 1\n#define D 2\n#ifdef B\n#if C\nint g(void) { return 1; }\n#endif\nint h(void);\n#endif\n"
      "KERNEL(k) { g(); }",
      "#define C 1\n#ifdef B\n#if C\nint g(void) { return 1; }\n#endif\n#endif\nKERNEL(k) { g(); }\n");
  assert_kept("int f(void) {\n#ifdef A\n  return 1;\n#endif\n}\n#pragma GCC unroll 4\nKERNEL(k) { f(); }",
              "int f(void) {\n#ifdef A\nreturn 1;\n#endif\n}\n#pragma GCC unroll 4\nKERNEL(k) { f(); }\n");
}

static void comments_and_lines_do_not_count(void **state) {
  (void)state;
  const char *plain = "int f(int x) { return x + '\"' + \"// no comment\"[0]; }\nKERNEL(k) { f(1); }\n";
  assert_kept(
      "#line 7 \"x.h\"\n/* a\n b */ int f(int x) { // c\n\n  return x  + '\"' /* d */ + \"// no comment\"[0];\n"
      "#line 9 \"x.h\"\n}\nKERNEL(k) { f(1); }",
      plain);
  assert_kept(plain, plain);
}

/* Such a text is kept as a whole. */
static void what_cannot_be_cut_is_kept(void **state) {
  (void)state;
  assert_kept("int f(void) {}\nKERNEL(k) { ", "int f(void) {} KERNEL(k) {");
  assert_kept("int f(void) {}\n#endif\nKERNEL(k) {}", "int f(void) {}\n#endif\nKERNEL(k) {}");
  assert_kept("int f(void) {}\n#if A\nKERNEL(k) {}", "int f(void) {}\n#if A\nKERNEL(k) {}");
  assert_kept("int f(void) {} } KERNEL(k) {}", "int f(void) {} } KERNEL(k) {}");
  assert_kept("", "");
}

/* ---- emitted kernels ----------------------------------------------------------------------------------------- */

static void emit(wlmi_generator *generator, int target, const covering_entry *entry, wlmi_program *program) {
  assert_status(WLM_OK, wlmi_generator_emit(generator, entry->variant, &entry->spec, targets[target], program));
}

static int compiles_to(int target, const char *source, void **image, size_t *size) {
  return (target == CUDA ? wlmi_nvrtc_compile(source, "kernel", 90, image, size, NULL)
                         : wlmi_host_compile(source, image, size)) == WLM_OK;
}

/* Compiles every `step`-th kernel of the sample, and what is kept of it. */
static void compile_what_is_kept(int target, int64_t step) {
  int64_t compiled = 0, number = 0;
  for (int64_t i = 0; i < sets[target].count; i++) {
    const covering_entry *entry = &sets[target].entries[i];
    wlmi_program program;
    void *image, *kept_image;
    size_t size, kept_size;
    if (!entry->in_sample || number++ % step) continue;
    emit(emit_generator, target, entry, &program);
    char *kept = kept_of(&program);
    assert_true(strlen(kept) < strlen(program.source) * 4 / 5);
    if (!compiles_to(target, program.source, &image, &size)) fail_msg("%s: %s", entry->variant, wlm_error_detail());
    if (!compiles_to(target, kept, &kept_image, &kept_size))
      fail_msg("%s: what is kept does not compile: %s", entry->variant, wlm_error_detail());
    if (size != kept_size || memcmp(image, kept_image, size))
      fail_msg("%s: what is kept compiles to another kernel", entry->variant);
    wlmi_free(image);
    wlmi_free(kept_image);
    wlmi_free(kept);
    wlmi_program_release(&program);
    compiled++;
  }
  print_message("%d kernels\n", (int)compiled);
  assert_true(compiled >= 6);
}

static void what_is_kept_compiles_to_the_same_host_kernel(void **state) {
  (void)state;
  compile_what_is_kept(HOST, 8);
}

static void what_is_kept_compiles_to_the_same_gpu_kernel(void **state) {
  (void)state;
  test_needs_nvrtc();
  compile_what_is_kept(CUDA, 18);
}

/* ---- changes of templates ------------------------------------------------------------------------------------ */

enum { FAMILIES = 32 };
typedef struct hashes {
  struct {
    char family[32], hash[WLM_HASH_HEX];
  } of[FAMILIES];
  int count;
} hashes;

/* Of one kernel of each family. */
static void hash_kernels(wlmi_generator *generator, hashes *out) {
  out->count = 0;
  for (int target = 0; target < TARGETS; target++)
    for (int64_t i = 0; i < sets[target].count; i++) {
      const covering_entry *entry = &sets[target].entries[i];
      const int length = (int)strcspn(entry->variant, "/");
      wlmi_program program;
      char family[32];
      int known = 0;
      snprintf(family, sizeof family, "%.*s", length, entry->variant);
      while (known < out->count && strcmp(out->of[known].family, family)) known++;
      if (known < out->count) continue;
      assert_in_range(known, 0, FAMILIES - 1);
      emit(generator, target, entry, &program);
      strcpy(out->of[known].family, family);
      assert_status(WLM_OK, wlmi_kernel_hash(&program, out->of[known].hash));
      out->count++;
      wlmi_program_release(&program);
    }
  assert_in_range(out->count, 12, FAMILIES);
}

static const char *const everything[] = {"", NULL}, *const nothing[] = {NULL};

static int is_one_of(const char *family, const char *const *list) {
  for (; *list; list++)
    if (!**list || !strcmp(*list, family)) return 1;
  return 0;
}

/* Changes a file of templates; then kernels of the families in `changed` have another hash, all others the same. */
static void assert_changes(const char *file, const char *from, const char *to, const char *const *changed) {
  hashes before, after;
  wlmi_generator *generator;
  int count = 0;
  const char *path = folder_file(&folder, file);
  replace_in_file(path, from, to);
  assert_status(WLM_OK, wlmi_generator_create(folder.path, &generator));
  hash_kernels(emit_generator, &before);
  hash_kernels(generator, &after);
  assert_int_equal(before.count, after.count);
  for (int i = 0; i < before.count; i++) {
    const int differs = strcmp(before.of[i].hash, after.of[i].hash) != 0;
    if (differs != is_one_of(before.of[i].family, changed))
      fail_msg("%s: '%s' %s the hash of %s", file, to, differs ? "changes" : "leaves", before.of[i].family);
    count += differs;
  }
  wlmi_generator_destroy(generator);
  replace_in_file(path, to, from);
}

static void only_kernels_that_use_a_change_get_another_hash(void **state) {
  (void)state;
  static const char *const tiles[] = {"merge_path", "row_block", NULL}, *const naive[] = {"row_naive", NULL};
  static const char *const waits[] = {"merge_path", "path_stage", "row_block", "row_fold", "row_kept",
                                      "row_sample", "row_stage",  "row_vec",   NULL};
  char command[600];
  snprintf(command, sizeof command, "cp -r '%s/templates/.' '%s'", WLM_SOURCE_DIR, folder.path);
  assert_int_equal(system(command), 0);
  assert_changes("prelude/cuda.h", "/* The grid:", "/* Something else.\n */\n\n/* The grid:", nothing);
  assert_changes("prelude/cuda.h", "/* The grid:", "#define WLM_UNUSED(x) (x)\n/* The grid:", nothing);
  assert_changes("prelude/cuda.h", "/* The grid:",
                 "#ifdef __CUDA_ARCH__\nWLM_FN int wlm_unused(int x) { return x; }\n#endif\n/* The grid:", nothing);
  assert_changes("row_naive/kernel.cu.in", "% if axis", "// a comment\n% if axis", nothing);
  assert_changes("row_naive/kernel.cu.in", "row >= args.rows ||", "args.rows <= row ||", naive);
  assert_changes("row_naive/family.lua", "units = \"rows\"", "units = \"cols\"", naive);
  assert_changes("prelude/cuda.h", "if ((int)args->fresh)", "if ((int)args->fresh != 0)", waits);
  assert_changes("prelude/tile.h", "if (row_begin < begin)", "if (begin > row_begin)", tiles);
  assert_changes("prelude/args.h", "long long fresh;", "long long fresh, fresher;", everything);
}

/* The same variant and problem give the same kernel, in any order and in any generator. */
static void kernels_are_the_same_each_time(void **state) {
  (void)state;
  wlmi_generator *other;
  assert_status(WLM_OK, wlmi_generator_create(NULL, &other));
  for (int target = 0; target < TARGETS; target++)
    for (int64_t i = sets[target].count; i-- > 0;) {
      const covering_entry *entry = &sets[target].entries[i];
      wlmi_program first, second;
      if (!entry->in_sample) continue;
      emit(emit_generator, target, entry, &first);
      emit(other, target, entry, &second);
      assert_string_equal(first.source, second.source);
      wlmi_program_release(&first);
      wlmi_program_release(&second);
    }
  wlmi_generator_destroy(other);
}

static int begin(void **state) {
  if (folder_begin(state) || emit_begin(state)) return 1;
  for (int target = 0; target < TARGETS; target++) covering_get(emit_generator, targets[target], 0, &sets[target]);
  return 0;
}

static int end(void **state) {
  for (int target = 0; target < TARGETS; target++) covering_release(&sets[target]);
  return emit_end(state) | folder_end(state);
}

int main(int argc, char **argv) {
  const struct CMUnitTest texts[] = {
      cmocka_unit_test(used_declarations_are_kept),
      cmocka_unit_test(conditions_around_what_is_kept_are_kept),
      cmocka_unit_test(comments_and_lines_do_not_count),
      cmocka_unit_test(what_cannot_be_cut_is_kept),
      cmocka_unit_test(only_kernels_that_use_a_change_get_another_hash),
      cmocka_unit_test(kernels_are_the_same_each_time),
  };
  const struct CMUnitTest compiled[] = {
      cmocka_unit_test(what_is_kept_compiles_to_the_same_host_kernel),
      cmocka_unit_test(what_is_kept_compiles_to_the_same_gpu_kernel),
  };
  const char *only = argc > 1 ? argv[1] : "";
  int failures = 0;
  if (strcmp(only, "compiled")) failures += cmocka_run_group_tests_name("texts", texts, begin, end);
  if (strcmp(only, "texts")) failures += cmocka_run_group_tests_name("compiled", compiled, begin, end);
  return failures;
}
