/* export --format c: the library that is built from the folder chooses as the full one does and computes the same bits,
 * links no compiler and no database, says what it does not contain, and replaces a kernel that it does not contain. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/csr/stats.h"
#include "core/problem/spec_key.h"
#include "db/store.h"
#include "exported/cases.h"
#include "generator/generator.h"
#include "runtime/context.h"
#include "runtime/devices.h"
#include "select/case.h"
#include "support/command.h"
#include "support/test.h"
#include "warploom/warploom_tune.h"

#define SHIPPED WLM_SOURCE_DIR "/share/warploom/system.db"

static char database[320], library[320];
static wlm_context *context;
static wlmi_generator *generator;

/* ---- a database ----------------------------------------------------------------------------------------- */

static wlm_stats full_stats(const exported_matrix *m) {
  wlm_stats stats = WLM_STATS_INIT;
  assert_status(WLM_OK, wlmi_stats_compute(m->wide, WLM_I64, m->rows, m->cols, m->nnz, m->colind, WLM_I32, &stats));
  return stats;
}

/* Some time that depends on the kernel and the matrix: longer rows favour other kernels. */
static int64_t made_up_time(const char *variant, int matrix) {
  uint64_t h = 99 + (uint64_t)matrix;
  while (*variant) h = (h ^ (unsigned char)*variant++) * 1099511628211u;
  return 1000000 + (int64_t)(h >> 20) % 900000;
}

static void put_case(wlm_store *store, const wlmi_device_record *device, const wlmi_limits *limits, int index) {
  const exported_case c = exported_case_of(index);
  const wlmi_candidate_list *list;
  wlmi_spec spec;
  char key[WLMI_SPEC_KEY];
  for (int number = 0; number < c.measured; number++) {
    exported_matrix m = exported_matrix_of(number);
    const wlm_csr csr = exported_csr(&c, &m);
    char name[16];
    snprintf(name, sizeof name, "m%d", number);
    assert_status(WLM_OK, wlmi_spec_make(&c.problem, &csr, &spec));
    wlmi_spec_key(&spec, key);
    assert_status(WLM_OK, wlmi_generator_describe(generator, &spec, limits, &list));
    wlmi_measurement_record *records = calloc((size_t)list->count, sizeof *records);
    int64_t count = 0;
    for (int64_t i = 0; i < list->count; i++) {
      const wlmi_candidate *candidate = &list->candidates[i];
      if (candidate->walks_a) continue;
      records[count++] =
          (wlmi_measurement_record)MEASUREMENT(.device = *device, .matrix_name = name, .stats = full_stats(&m),
                                               .variant = (char *)candidate->variant, .problem = key, .n = c.problem.n,
                                               .compiler = "some compiler",
                                               .time_ps = made_up_time(candidate->variant, number),
                                               .prepare_ps = candidate->prepares ? 4000000 : 0);
    }
    assert_status(WLM_OK, wlmi_store_put(store, records, count));
    free(records);
    wlmi_candidates_drop(list);
    exported_matrix_free(&m);
  }
}

/* The slowest kernel is pinned for one matrix. */
static void pin_slowest(wlm_store *store, const char *device_class) {
  const exported_case c = exported_case_of(0);
  exported_matrix m = exported_matrix_of(1);
  const wlm_csr csr = exported_csr(&c, &m);
  const wlm_stats stats = full_stats(&m);
  const wlmi_candidate_list *list;
  char target[WLMI_HASH_HEX], key[WLMI_SPEC_KEY];
  int64_t worst = 0;
  GET(wlmi_spec, spec, wlmi_spec_make(&c.problem, &csr, &spec));
  wlmi_spec_key(&spec, key);
  assert_status(WLM_OK, wlmi_generator_describe(generator, &spec, &wlmi_context_device(context)->info.limits, &list));
  for (int64_t i = 1; i < list->count; i++)
    if (!list->candidates[i].prepares &&
        made_up_time(list->candidates[i].variant, 1) > made_up_time(list->candidates[worst].variant, 1))
      worst = i;
  wlmi_hash_to_hex((wlmi_hash){stats.fingerprint[0], stats.fingerprint[1]}, target);
  const wlmi_pin_record pin = {(char *)device_class, target, key, c.problem.n, (char *)list->candidates[worst].variant};
  assert_status(WLM_OK, wlmi_store_pin(store, &pin));
  wlmi_candidates_drop(list);
  exported_matrix_free(&m);
}

/* Measurements of this machine and of the GPU of the fake driver; a model and a pin of this machine. */
static void make_database(void) {
  const wlmi_limits gpu = {WLMI_TARGET_CUDA, 90, 1024, 227 << 10, 132, 0, 0};
  const wlmi_device_record gpu_record = {"Fake GPU", "cuda", "sm_90", 132, 64 << 20};
  wlm_context_options options = CONTEXT_OPTIONS(.device = "host", .database = database, .system_database = "");
  wlmi_device_record record;
  assert_status(WLM_OK, wlm_context_create(&options, &context));
  generator = wlmi_context_generator(context);
  record = wlmi_device_record_of(wlmi_context_device(context));
  GET(wlm_store *, store, wlmi_store_open(database, WLMI_STORE_WRITE, &store));
  for (int i = 0; i < EXPORTED_CASES; i++) put_case(store, &record, &wlmi_context_device(context)->info.limits, i);
  put_case(store, &gpu_record, &gpu, 0);
  pin_slowest(store, wlmi_context_device_class(context));
  wlmi_store_close(store);
  assert_status(WLM_OK, wlm_train(context));
  wlm_context_destroy(context);
}

/* ---- building ------------------------------------------------------------------------------------------- */

static void shell(const char *line) {
  command c;
  command_start(&c, &folder, (const char *const[]){"/bin/sh", "-c", line, NULL});
  command_wait(&c);
  if (c.code) fail_msg("%s: exit code %d\n%s\n%s", line, c.code, c.out, c.err);
}

static void expect(command *c, const char *const argv[]) {
  command_start(c, &folder, argv);
  command_wait(c);
  if (c->code) fail_msg("%s %s: exit code %d\n%s\n%s", argv[0], argv[1], c->code, c->out, c->err);
}

static void make_library(void) {
  char line[400];
  snprintf(line, sizeof line, "make -s -j2 -C %s", library);
  shell(line);
}

/* cc with the exported library; `extra` are more arguments. */
static void build(const char *source, const char *program, const char *extra) {
  char line[4096];
  snprintf(line, sizeof line,
           "cc -O1 %s -o %s/%s %s -I%s/include -I%s/tests -I%s %s/libwarploom.a -Wl,--gc-sections -fopenmp -lm -ldl "
           "-lpthread %s",
           WLM_SANITIZERS, folder.path, program, source, library, WLM_SOURCE_DIR, WLM_SOURCE_DIR, library, extra);
  shell(line);
}

static char *output_of(const char *program, const char *width, const char *arch) {
  command c;
  expect(&c, (const char *const[]){program, arch ? "cuda" : "host", database, width, arch ? WLM_FAKE_CUDA : NULL, arch,
                                   NULL});
  char *out = strdup(c.out);
  return out;
}

/* Bytes of a program without symbols. */
static int64_t size_of(const char *program) {
  char path[600], line[700];
  struct stat facts;
  snprintf(path, sizeof path, "%s/%s", folder.path, program);
  snprintf(line, sizeof line, "strip %s", path);
  shell(line);
  assert_int_equal(stat(path, &facts), 0);
  return facts.st_size;
}

/* ---- tests ---------------------------------------------------------------------------------------------- */

/* Compares the lines that begin with `part`, so that a failure names the case. Returns their number. */
static int64_t assert_same_lines(const char *full, const char *exported, const char *part) {
  int64_t compared = 0;
  while (*full) {
    const size_t length = strcspn(full, "\n") + 1, other = strcspn(exported, "\n") + 1;
    const int counts = !strncmp(full, part, strlen(part));
    if (counts && (length != other || strncmp(full, exported, length)))
      fail_msg("full:     %.*sexported: %.*s", (int)length, full, (int)other, exported);
    compared += counts;
    full += length;
    exported += other;
  }
  return compared;
}

TEST(host_chooses_and_computes_the_same) {
  char choices[600];
  snprintf(library, sizeof library, "%s/library", folder.path);
  command c = RUN(0, "export", "--format", "c", "--arch", "host", "--db", database, "-o", library, "--json");
  assert_true(json_is_valid(c.out));
  assert_json_at(c.out, "$.gpu_kernels", "0");
  assert_json_at(c.out, "$.device_classes", "1");
  assert_true(json_number_at(c.out, "$.host_kernels") > EXPORTED_CASES);
  assert_json_at(c.out, "$.problems[8].target", "host");
  make_library();
  snprintf(choices, sizeof choices, "%s/tests/exported/choices.c", WLM_SOURCE_DIR);
  build(choices, "choices", "");
  const char *program = in_folder("choices");
  char *full = output_of(WLM_FULL_CHOICES, "0", NULL), *exported = output_of(program, "0", NULL);
  for (int index = 0; index < EXPORTED_CASES; index++)
    for (int number = 0; number < exported_case_of(index).measured; number++) {
      char part[64];
      snprintf(part, sizeof part, "case %d matrix %d ", index, number);
      assert_true(assert_same_lines(full, exported, part) >= 4);
    }
  for (int index = 0; index < EXPORTED_CASES; index++) /* of the last matrix, which was not measured, only plans */
    for (int i = 0; i < 2; i++) {
      char part[64];
      snprintf(part, sizeof part, "case %d matrix %d %s", index, EXPORTED_MODELLED, i ? "estimated" : "known");
      assert_true(assert_same_lines(full, exported, part) >= 1);
    }
  assert_null(strstr(full, "WLM_ERR"));
  assert_int_equal(count_lines(exported, "known for 1 calls: "), 9 + (EXPORTED_CASES - 1) * 2 + EXPORTED_CASES);
  assert_int_equal(count_lines(exported, "log:"), 0);
  free(full);
  free(exported);
  /* a width that is not contained */
  FREED char *missing = output_of(program, "33", NULL);
  assert_contains(missing,
                  "case 0 matrix 0 known for 1 calls: WLM_ERR_UNSUPPORTED: the exported library does not "
                  "contain op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none with n = 33 for "
                  "the host");
}

/* With whichever warnings the user's own build has. */
TEST(the_sources_have_no_warnings) {
  static const char *const compilers[] = {"cc", "clang"};
  char line[1500];
  for (int i = 0; i < 2; i++) {
    snprintf(
        line, sizeof line,
        "command -v %s > /dev/null || exit 0; cp -r %s %s/strict && cd %s/strict && make -s clean && "
        "make -s CC=%s CFLAGS='-std=c11 -Wall -Wextra -Werror' HOST_FLAGS='-std=c11 -Wall -Wextra -Werror -fopenmp' "
        "&& cd .. && rm -r strict",
        compilers[i], library, folder.path, folder.path, compilers[i]);
    shell(line);
  }
}

static void expect_refusal(const char *output, const char *list, const char *message) {
  command c;
  const char *path = in_folder("some_list");
  write_whole(path, list, strlen(list));
  command_run(&c, &folder, "export", "--format", "c", "--arch", "host", "--for", path, "--db", database, "-o", output);
  if (!c.code || !strstr(c.err, message)) fail_msg("%s: exit code %d\n%s%s", list, c.code, c.out, c.err);
}

/* Also before the work that could take minutes: what cannot be written, and files that are not ours. */
TEST(wrong_lists_and_folders_are_named) {
  static const char key[] = "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none";
  static const struct {
    const char *rest, *message;
  } lists[] = {
      {"",
       "some_list: 'op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none' is not followed by widths; "},
      {" 0", "some_list: the widths '0' are not understood; write numbers from 1 to "},
      {" 32,", "some_list: the widths '32,' are not understood; "},
      {" 32,x", "some_list: the widths '32,x' are not understood; "},
      {" 99999999999", "some_list: the widths '99999999999' are not understood; "},
      {" 32 99999999999999999999x9:9", "some_list: '99999999999999999999x9:9' is neither a matrix"},
      {" 32 9x9", "some_list: '9x9' is neither a matrix that was measured on such devices nor a size; write ROWS"},
      {",extra=1 32", "sample=none,extra=1' is no problem of this version; write one as `warploom db list` prints it"},
      {"+activation=( 32", "some_list: op:activation, column "},
  };
  char line[700];
  command c;
  const char *output = in_folder("refused");
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    snprintf(line, sizeof line, "\xEF\xBB\xBF%s%s\r\n", key, lists[i].rest); /* as some editors write it */
    expect_refusal(output, line, lists[i].message);
  }
  expect_refusal(output, "# nothing\n", "some_list: names nothing to export; ");
  expect_refusal("-", "* *\n", "-o -: --format c writes a folder; name one");
  expect_refusal(database, "* *\n", "Not a directory; name a folder with -o");
  expect_refusal(folder.path, "* *\n", "has files that are no export, which might be replaced; name a new or empty");
  command_run(&c, &folder, "export", "--format", "c", "--arch", "host", "--db", database, "-o", library);
  assert_int_equal(c.code, 0); /* again into the same folder */
}

/* libwarploom-run itself, with empty tables. */
TEST(a_program_grows_little) {
  static const char text[] = "#include \"exported/tables.h\"\nconst wlmi_exported wlmi_exported_tables = {0};\n";
  char line[2000];
  command c;
  if (*WLM_SANITIZERS) skip();
  const char *source = in_folder("empty.c");
  write_whole(source, text, strlen(text));
  snprintf(line, sizeof line, "echo 'int main(void) { return 0; }' > %s/n.c && cc -o %s/nothing %s/n.c -fopenmp",
           folder.path, folder.path, folder.path);
  shell(line);
  snprintf(line, sizeof line,
           "cd %s && cc -O1 -o all -I%s/include -I%s/internal -I%s/tests %s/tests/exported/choices.c empty.c "
           "%s/lib/libwarploom-run.a -Wl,--gc-sections -fopenmp -lm -ldl -lpthread",
           folder.path, library, library, WLM_SOURCE_DIR, WLM_SOURCE_DIR, library);
  shell(line);
  const int64_t bytes = size_of("all") - size_of("nothing");
  print_message("a stripped program grows by %lld bytes\n", (long long)bytes);
  assert_in_range(bytes, 100 << 10, 400 << 10);
  snprintf(line, sizeof line, "ldd %s/all", folder.path);
  expect(&c, (const char *const[]){"/bin/sh", "-c", line, NULL});
  static const char *const absent[] = {"lua",     "sqlite", "jansson", "libz", "lzma",
                                       "minizip", "xxhash", "nvrtc",   "cuda"};
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) assert_null(strstr(c.out, absent[i]));
}

/* Functions that need more than the exported library has; and the JSON that it writes as the full one does. */
TEST(the_rest_is_unsupported) {
  static const char text[] =
      "#include <stdio.h>\n#include <string.h>\n#include <warploom/warploom_tune.h>\n"
      "#define REFUSED(call) if ((call) != WLM_ERR_UNSUPPORTED || !strstr(wlm_error_detail(), \"exported library\")) "
      "return printf(\"%s: %s\\n\", #call, wlm_error_detail()), 1\n"
      "int main(void) {\n  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;\n  wlm_context *context;\n"
      "  char *info, *exported = (char *)&info;\n  int64_t added = 7;\n  options.device = \"host\";\n"
      "  const char *const layers[] = {\"a.jsonl\"};\n  options.layers = layers;\n  options.layer_count = 1;\n"
      "  REFUSED(wlm_context_create(&options, &context));\n  options.layer_count = 0;\n"
      "  if (wlm_context_create(&options, &context)) return 2;\n"
      "  REFUSED(wlm_tune(context, NULL, NULL, NULL, NULL));\n  REFUSED(wlm_train(context));\n"
      "  REFUSED(wlm_plan_create_online(context, NULL, NULL, NULL, NULL));\n"
      "  REFUSED(wlm_export_string(context, &exported));\n  REFUSED(wlm_export_path(context, \"x\"));\n"
      "  REFUSED(wlm_import_path(context, \"x\", &added));\n  REFUSED(wlm_import_string(context, \"\", &added));\n"
      "  if (exported || added || wlm_context_refresh(context)) return 3;\n"
      "  if (wlm_context_info(context, &info)) return 4;\n  printf(\"[%s,\", info);\n  wlm_string_free(info);\n"
      "  const int32_t rowptr[] = {0, 1}, colind[] = {0};\n  const float values[] = {1};\n"
      "  wlm_csr csr = WLM_CSR_INIT;\n  csr.rows = csr.cols = csr.nnz = 1;\n"
      "  csr.rowptr = rowptr, csr.colind = colind, csr.values = values;\n  wlm_matrix *matrix;\n  wlm_plan *plan;\n"
      "  wlm_problem problem = WLM_PROBLEM_INIT;\n  problem.n = 32;\n"
      "  if (wlm_matrix_create(context, &csr, NULL, &matrix)) return 5;\n"
      "  if (wlm_plan_create(context, matrix, &problem, &plan)) return 6;\n"
      "  if (wlm_plan_explain(plan, 1, &info)) return 7;\n  printf(\"%s]\", info);\n  wlm_string_free(info);\n"
      "  wlm_plan_destroy(plan);\n  wlm_matrix_destroy(matrix);\n"
      "  wlm_context_destroy(context);\n  return 0;\n}\n";
  command c;
  const char *source = in_folder("rest.c");
  write_whole(source, text, strlen(text));
  build(source, "rest", "");
  const char *program = in_folder("rest");
  expect(&c, (const char *const[]){program, "", NULL});
  assert_true(json_is_valid(c.out));
  assert_json_at(c.out, "$[0].kind", "host");
  assert_json_at(c.out, "$[0].layers", "[]");
  assert_json_at(c.out, "$[1].n", "32");
  assert_json_at(c.out, "$[1].ranking[0].stale", "0");
}

/* Only choices for one matrix are contained, so others get a kernel of the same problem, with one warning each. */
TEST(a_missing_kernel_is_replaced) {
  static const char list[] = "# one matrix\nop=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none 32 m0\n";
  char choices[600];
  const char *path = in_folder("list");
  snprintf(library, sizeof library, "%s/small", folder.path);
  write_whole(path, list, strlen(list));
  command c =
      RUN(0, "export", "--format", "c", "--arch", "host", "--for", path, "--db", database, "-o", library, "--json");
  char *second = json_at(c.out, "$.problems[1]");
  assert_null(second);
  make_library();
  snprintf(choices, sizeof choices, "%s/tests/exported/choices.c", WLM_SOURCE_DIR);
  build(choices, "small_choices", "");
  const char *program = in_folder("small_choices");
  FREED char *out = output_of(program, "0", NULL);
  assert_contains(out, "is not contained in the exported library");
  assert_int_equal(count_lines(out, "case 0"), 10 * 5);
  assert_int_equal(count_lines(out, "WLM_ERR"), count_lines(out, "case ") - 10 * 5); /* the other cases alone fail */
  for (int i = 0; i < EXPORTED_MATRICES; i++) {
    char part[64];
    snprintf(part, sizeof part, "case 0 matrix %d known for 1 calls: host_", i);
    assert_int_equal(count_lines(out, part), 1);
  }
  assert_contains(out, "case 1 matrix 0 known for 1 calls: WLM_ERR_UNSUPPORTED");
  assert_true(count_lines(out, "log: falling back to") < count_lines(out, "case 0"));
}

/* What keys leave out is named behind them: here tanh([.1 .2] * [1 3; 2 5] + [.5 -.5]). */
TEST(policies_and_epilogues_are_named) {
  static const char list[] =
      "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none"
      "+deterministic+bias+activation=tanh 2 m0\n";
  static const char text[] =
      "#include <math.h>\n#include <stdio.h>\n#include <warploom/warploom.h>\n"
      "int main(void) {\n  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;\n  wlm_context *context;\n"
      "  const int32_t rowptr[] = {0, 2}, colind[] = {0, 1};\n"
      "  const float values[] = {.1f, .2f}, b[] = {1, 3, 2, 5}, bias[] = {.5f, -.5f};\n  float c[2];\n"
      "  options.device = \"host\";\n  if (wlm_context_create(&options, &context)) return 2;\n"
      "  wlm_csr csr = WLM_CSR_INIT;\n  csr.rows = 1, csr.cols = csr.nnz = 2;\n"
      "  csr.rowptr = rowptr, csr.colind = colind, csr.values = values;\n"
      "  wlm_problem problem = WLM_PROBLEM_INIT;\n  problem.n = 2, problem.policy.deterministic = 1;\n"
      "  problem.epilogue.bias = 1, problem.epilogue.activation = \"tanh\";\n"
      "  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;\n  args.b = b, args.c = c, args.bias = bias;\n"
      "  if (wlm_spmm(context, &csr, &problem, &args)) return puts(wlm_error_detail()), 3;\n"
      "  if (fabs(c[0] - tanh(1.0)) > 1e-5 || fabs(c[1] - tanh(.8)) > 1e-5) return printf(\"%f %f\\n\", c[0], c[1]), "
      "4;\n"
      "  problem.policy.deterministic = 0;\n"
      "  if (wlm_spmm(context, &csr, &problem, &args) != WLM_ERR_UNSUPPORTED) return 5;\n"
      "  puts(wlm_error_detail());\n  wlm_context_destroy(context);\n  return 0;\n}\n";
  const char *path = in_folder("named");
  snprintf(library, sizeof library, "%s/epilogue", folder.path);
  write_whole(path, list, strlen(list));
  command c = RUN(0, "export", "--format", "c", "--arch", "host", "--for", path, "--db", database, "-o", library);
  assert_contains(c.out, "+deterministic+bias+activation=tanh");
  make_library();
  path = in_folder("epilogue.c");
  write_whole(path, text, strlen(text));
  build(path, "run_epilogue", "");
  const char *program = in_folder("run_epilogue");
  expect(&c, (const char *const[]){program, NULL});
  assert_contains(c.out, "sample=none, with a bias, with an activation with n = 2 for the host");
}

TEST(the_example_runs) {
  char source[600];
  snprintf(source, sizeof source, "%s/examples/exported/list.txt", WLM_SOURCE_DIR);
  snprintf(library, sizeof library, "%s/example", folder.path);
  command c =
      RUN(0, "export", "--format", "c", "--arch", "host", "--for", source, "--db", database, "-o", library, "--json");
  assert_json_at(c.out, "$.problems[2].target", "host"); /* two of the three widths were not tuned */
  make_library();
  snprintf(source, sizeof source, "%s/examples/exported/main.c", WLM_SOURCE_DIR);
  build(source, "main", "");
  const char *program = in_folder("main");
  expect(&c, (const char *const[]){program, "host", NULL});
  assert_int_equal(count_lines(c.out, "correct"), 3);
}

/* Exports for a GPU and builds the program with it; 0 without NVRTC. */
static int make_gpu_library(const char *name, const char *arch, const char *list) {
  char path[600], program[64];
  command c;
  snprintf(path, sizeof path, "%s/list_of_%s", folder.path, name);
  snprintf(library, sizeof library, "%s/%s", folder.path, name);
  write_whole(path, list, strlen(list));
  command_run(&c, &folder, "export", "--format", "c", "--arch", arch, "--for", path, "--db", database, "-o", library,
              "--json");
  const int has_compiler = !(c.code == 2 && strstr(c.err, "NVRTC"));
  if (c.code && has_compiler) fail_msg("%s", c.err);
  if (has_compiler) assert_true(json_number_at(c.out, "$.gpu_kernels") > 4);
  if (!has_compiler) return 0;
  make_library();
  snprintf(path, sizeof path, "%s/tests/exported/choices.c", WLM_SOURCE_DIR);
  snprintf(program, sizeof program, "%s_choices", name);
  build(path, program, "-DWLM_TESTS_FAKE_DRIVER");
  return 1;
}

#define SUM "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none"

TEST(gpu_chooses_the_same) {
  if (!make_gpu_library("gpu", "sm_90", SUM " 32 m0 m1 m2 m3 m4 m5 m6 m7 m8\n")) skip();
  const char *program = in_folder("gpu_choices");
  char *full = output_of(WLM_FULL_GPU_CHOICES, "0", "90"), *exported = output_of(program, "0", "90");
  assert_int_equal(count_lines(full, "case 0 matrix"), 10 * 5);
  for (int i = 0; i < EXPORTED_MODELLED; i++) { /* the last matrix is not in the list */
    char part[64];
    snprintf(part, sizeof part, "case 0 matrix %d ", i);
    assert_int_equal(assert_same_lines(full, exported, part), 5);
  }
  free(full);
  free(exported);
  FREED char *older = output_of(program, "0", "80"); /* runs no code of sm_90 */
  assert_contains(older, "WLM_ERR_UNSUPPORTED: the exported library does not contain " SUM " with n = 32 for sm_80");
}

TEST(newer_gpus_run_ptx) {
  if (!make_gpu_library("ptx", "compute_80", SUM " 32 m0\n")) skip();
  const char *program = in_folder("ptx_choices");
  FREED char *newer = output_of(program, "0", "100");
  assert_int_equal(count_lines(newer, "case 0 matrix"), 10 * 5);
  assert_null(strstr(newer, "WLM_ERR"));
}

/* Every fourth matrix whose name is no other's, so that the command takes seconds instead of minutes; with
 * WARPLOOM_FULL all of these. */
static int is_exported(const wlmi_cases *cases, const wlmi_case *c) {
  for (int64_t k = 0; k < cases->count; k++)
    if (!strcmp(cases->list[k].matrix, c->matrix) && cases->list[k].stats->fingerprint[0] != c->stats->fingerprint[0])
      return 0;
  return getenv("WARPLOOM_FULL") || c->stats->fingerprint[0] % 4 == 0;
}

static int is_first_of_its_matrix(const wlmi_cases *cases, int64_t i) {
  for (int64_t k = 0; k < i; k++)
    if (cases->list[k].stats->fingerprint[0] == cases->list[i].stats->fingerprint[0]) return 0;
  return 1;
}

/* Writes cases of the shipped database, but no gradients, as the fake driver makes no transposes; and a list for --for
 * with their matrices. Returns the number of cases. */
static int64_t write_statistics(const char *path, const char *list) {
  wlmi_measurement_record *records;
  int64_t count, written = 0;
  FILE *file = fopen(path, "wb"), *names = fopen(list, "wb");
  assert_non_null(file);
  assert_non_null(names);
  fputs("* *", names);
  GET(wlm_store *, store, wlmi_store_open(SHIPPED, WLMI_STORE_READ_SHIPPED, &store));
  assert_status(WLM_OK, wlmi_store_load(store, "cuda/sm_90/NVIDIA H200/132", &records, &count));
  GET(wlmi_cases, cases, wlmi_cases_make(records, count, &cases));
  for (int64_t i = 0; i < cases.count; i++) {
    const wlmi_case *c = &cases.list[i];
    GET(wlmi_spec, spec, wlmi_spec_from_key(c->problem, c->n, &spec));
    if (is_exported(&cases, c) && is_first_of_its_matrix(&cases, i)) fprintf(names, " %s", c->matrix);
    if (spec.problem.transpose || !is_exported(&cases, c)) continue;
    const exported_statistics s = {*c->stats, c->n, spec.has_values, spec.problem.operation == WLM_ATTENTION};
    assert_int_equal(fwrite(&s, sizeof s, 1, file), 1);
    written++;
  }
  fputs("\n", names);
  fclose(names);
  fclose(file);
  wlmi_cases_release(&cases);
  wlmi_measurements_free(records, count);
  wlmi_store_close(store);
  return written;
}

/* The fake compiler emits no code, so that all kernels for these matrices are contained within seconds. */
TEST(gpu_chooses_the_same_for_all_that_ships) {
  char program[600];
  command full, exported, c;
  setenv("WARPLOOM_NVRTC", WLM_FAKE_NVRTC, 1);
  const char *path = in_folder("statistics"), *none = in_folder("none.db");
  snprintf(library, sizeof library, "%s/shipped", folder.path);
  const char *list = in_folder("statistics.list");
  const int64_t cases = write_statistics(path, list);
  assert_true(cases > 300);
  c = RUN(0, "export", "--format", "c", "--arch", "sm_90", "--for", list, "-o", library, "--json");
  assert_json_at(c.out, "$.device_classes", "2");
  make_library();
  snprintf(program, sizeof program, "%s/tests/exported/choices.c", WLM_SOURCE_DIR);
  build(program, "shipped_choices", "-DWLM_TESTS_FAKE_DRIVER");
  snprintf(program, sizeof program, "%s/shipped_choices", folder.path);
  expect(&full,
         (const char *const[]){WLM_FULL_GPU_CHOICES, "cuda", none, "0", WLM_FAKE_CUDA, "90", path, SHIPPED, NULL});
  expect(&exported, (const char *const[]){program, "cuda", none, "0", WLM_FAKE_CUDA, "90", path, SHIPPED, NULL});
  assert_int_equal(assert_same_lines(full.out, exported.out, ""), 4 * cases);
  assert_int_equal(count_lines(exported.out, "calls: "), 4 * cases);
  assert_int_equal(count_lines(exported.out, "/"), 4 * cases); /* each has a variant */
  unsetenv("WARPLOOM_NVRTC");
}

/* NVRTC runs in the process of the command, which must end by the signal and not when NVRTC returns. */
TEST(signals_end_it_while_nvrtc_compiles) {
  static const int signals[] = {SIGTERM, SIGINT};
  static const char key[] = "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none 8 100x100:500\n";
  char begun[640];
  const char *list = in_folder("one.list"), *waits = in_folder("waits");
  snprintf(begun, sizeof begun, "%s.begun", waits);
  write_whole(list, key, strlen(key));
  write_whole(waits, "", 0);
  setenv("WARPLOOM_NVRTC", WLM_FAKE_NVRTC, 1);
  setenv("WLM_FAKE_NVRTC_WAITS", waits, 1);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    command c;
    signal(signals[i], SIG_DFL); /* a shell lets programs in the background ignore SIGINT */
    unlink(begun);
    command_begin(&c, &folder, "export", "--format", "c", "--arch", "sm_90", "--for", list, "-o", "ended");
    while (access(begun, F_OK)) usleep(1000);
    kill(c.process, signals[i]);
    command_wait(&c);
    assert_int_equal(c.code, -signals[i]);
    assert_contains(c.err, "compile 0/");
  }
  unsetenv("WLM_FAKE_NVRTC_WAITS");
  unsetenv("WARPLOOM_NVRTC");
}

TEST(wrong_options_are_named) {
  const char *path = in_folder("wrong");
  static const char *const lists[][2] = {
      {"op=mul.sum widths\n", "the widths 'widths' are not understood"},
      {"* 8 nowhere\n", "'nowhere' is neither a matrix that was measured on such devices nor a size; "},
      {"op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none+quick 8\n", "'+quick' is none of"},
      {"op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none+bias *\n", "needs widths"}};
  command c = RUN(2, "export", "--format", "c", "--db", database, "-o", "out");
  assert_contains(c.err, "needs --arch");
  c = RUN(2, "export", "--format", "c", "--arch", "sm_42", "--db", database, "-o", "out");
  assert_contains(c.err, "--arch sm_42: no such architecture");
  c = RUN(2, "export", "--format", "c", "--arch", "host,host", "--db", database, "-o", "out");
  assert_contains(c.err, "--arch names host twice");
  c = RUN(2, "export", "--arch", "host", "--db", database, "-o", "out");
  assert_contains(c.err, "--arch is for --format c");
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    write_whole(path, lists[i][0], strlen(lists[i][0]));
    c = RUN(2, "export", "--format", "c", "--arch", "host", "--for", path, "--db", database, "-o", "out");
    assert_contains(c.err, lists[i][1]);
  }
}

static int begin(void **state) {
  const int failed = home_begin(state);
  snprintf(database, sizeof database, "%s/tuned.db", folder.path);
  make_database();
  return failed;
}

GROUP(begin, folder_end)
