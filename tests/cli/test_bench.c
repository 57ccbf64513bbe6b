/* warploom bench on the host device: its output, continuing an interrupted run, and refused arguments. */
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "support/command.h"
#include "support/emit_fixture.h"
#include "support/test.h"

static const char matrix_text[] =
    "%%MatrixMarket matrix coordinate pattern general\n5 6 7\n1 1\n1 3\n2 2\n4 6\n4 1\n4 2\n5 5\n";

#define BENCH(code, ...) RUN(code, "bench", "core", "--device", "host", "--samples", "3", __VA_ARGS__)

TEST(writes_one_line_per_case_and_resumes) {
  const char *matrix = in_folder("small.mtx"), *results = in_folder("results.jsonl");
  write_whole(matrix, matrix_text, strlen(matrix_text));

  command c = BENCH(0, "-n", "3", "--out", results, matrix);
  assert_int_equal(count_lines(c.out, "small, n = 3, us "), 1);
  FREED char *first = text_of(results);
  assert_int_equal(count_lines(first, "\"suite\":\"core\""), 1);
  assert_true(json_is_valid(first));
  assert_json(first, {"$.matrix", "small"}, {"$.nnz", "7"}, {"$.n", "3"}, {"$.failed", "{}"});
  static const char *const members[] = {"suite",
                                        "device",
                                        "matrix",
                                        "rows",
                                        "cols",
                                        "nnz",
                                        "n",
                                        "op",
                                        "type",
                                        "us",
                                        "spread",
                                        "variant",
                                        "prepared_us",
                                        "prepared_variant",
                                        "prepare_us",
                                        "chosen_us",
                                        "chosen_variant",
                                        "ge_spmm_us",
                                        "cusparse",
                                        "cusparse_errors",
                                        "compulsory_gbs",
                                        "gather_gbs",
                                        "max_rel_err"};
  for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", members[i]);
    assert_contains(first, key);
  }
  assert_true(json_number_at(first, "$.max_rel_err") < 1e-6);
  assert_true(json_number_at(first, "$.us") > 0);
  FREED char *variant = json_at(first, "$.variant");
  assert_true(variant && !strncmp(variant, "host_", 5));

  /* Cut the results file in the middle of the second case, as an interrupted run leaves it. */
  FREED char *cut = malloc(strlen(first) + 16);
  assert_non_null(cut);
  size_t size = (size_t)sprintf(cut, "%s{\"suite\":\"co", first);
  write_whole(results, cut, size);
  c = BENCH(0, "-n", "3,8", "--out", results, matrix, "uniform:rows=50,d=3");
  assert_int_equal(count_lines(c.out, "small, n = 8, us "), 1);
  FREED char *second = text_of(results);
  assert_memory_equal(second, first, strlen(first)); /* the complete lines are kept */
  assert_int_equal(count_lines(second, "\"suite\":\"core\""), 4);
  assert_int_equal(count_lines(second, "\"matrix\":\"small\""), 2);
  assert_int_equal(count_lines(second, "\"matrix\":\"uniform:rows=50,d=3\""), 2);

  BENCH(0, "-n", "3,8", "--out", results, matrix, "uniform:rows=50,d=3"); /* all cases are in the file */
  FREED char *third = text_of(results);
  assert_string_equal(third, second);
}

TEST(bad_input_does_not_stop_the_rest) {
  command c = BENCH(1, "-n", "4", "nowhere.mtx", "uniform:rows=20,d=2");
  assert_contains(c.err, "nowhere.mtx");
  assert_int_equal(count_lines(c.out, "uniform:rows=20,d=2"), 1);
}

TEST(bad_command_line) {
  RUN(2, "bench");
  command c = RUN(2, "bench", "nothing", "a.mtx");
  assert_contains(c.err, "unknown suite nothing");
  BENCH(2, "-n", "0", "a.mtx");
  BENCH(2, "--samples", "many", "a.mtx");
  BENCH(2, "--budget", "0", "a.mtx");
  c = BENCH(2, "--colour", "a.mtx");
  assert_contains(c.err, "--colour");
  c = RUN(2, "bench", "core");
  assert_contains(c.err, "--data DIR");
  c = BENCH(1, "--out", "/nowhere/at/all", "uniform:rows=20,d=2");
  assert_contains(c.err, "/nowhere/at/all");
  c = RUN(0, "bench", "--help");
  assert_contains(c.out, "core");
}

/* ---- prepared kernels ------------------------------------------------------------------------------ */

/* Two families of the host: a kernel of one repeats its work a thousand times, a kernel of the other does it once. */
static void write_families(test_folder *templates, int plain_repeats, int prepared_repeats) {
  char kernel[1600];
  folder_make(templates);
  emit_write(templates, "test_plain", "family.lua",
             "return { target = 'host', summary = 'reads rowptr', split = 'none', parameters = { { 'p', { 1 } } },\n"
             "  passes = function() return { { kernel = 'wlm_plain', units = 'rows', units_per_block = 64 } } end }\n");
  emit_write(
      templates, "test_prepared", "family.lua",
      "return { target = 'host', summary = 'reads a copy', split = 'none', parameters = { { 'p', { 1 } } },\n"
      "  prepared = function() return { one = 8, rows = 8 } end,\n"
      "  passes = function() return { { kernel = 'wlmi_copy', when = 'prepare', units = 'one', units_per_block = 1 },\n"
      "    { kernel = 'wlm_prepared', units = 'rows', units_per_block = 64 } } end }\n");
  static const char body[] =
      "WLM_KERNEL(%s) {\n  (void)unit_blocks;\n%s"
      "  for (int again = 0; again < %d; again++)\n  for (long long row = 0; row < args->rows; row++)\n"
      "    for (long long column = 0; column < args->n; column++) {\n"
      "      const long long begin = BEGIN(row), end = BEGIN(row + 1);\n      wlm_acc_t acc = wlm_init();\n"
      "      for (long long p = begin; p < end; p++)\n        acc = wlm_reduce(acc, wlm_message(wlm_load_a(args, p),\n"
      "          wlm_load_b((const wlm_b_t *)args->b + wlm_column(args, p) * args->ldb + column)));\n"
      "      wlm_store(args, (wlm_c_t *)args->c + row * args->ldc + column, column,\n"
      "                wlm_normalise(wlm_finish(acc, end - begin), end - begin, end - begin));\n"
      "      __asm__ volatile(\"\" ::: \"memory\");\n    }\n}\n";
  int size = snprintf(kernel, sizeof kernel, "#define BEGIN(row) wlm_begin(args, row)\n");
  snprintf(kernel + size, sizeof kernel - (size_t)size, body, "wlm_plain", "", plain_repeats);
  emit_write(templates, "test_plain", "kernel.c.in", kernel);
  size = snprintf(kernel, sizeof kernel,
                  "#define BEGIN(row) kept[row]\nWLM_KERNEL(wlmi_copy) {\n  (void)unit_blocks;\n"
                  "  for (long long row = 0; row <= args->rows; row++)\n"
                  "    ((long long *)args->prepared)[row] = wlm_begin(args, row);\n}\n");
  snprintf(kernel + size, sizeof kernel - (size_t)size, body, "wlm_prepared",
           "  const long long *kept = (const long long *)args->prepared;\n", prepared_repeats);
  emit_write(templates, "test_prepared", "kernel.c.in", kernel);
}

static char *line_with_families(int plain_repeats, int prepared_repeats) {
  test_folder templates;
  const char *results = in_folder("prepared.jsonl");
  remove(results);
  write_families(&templates, plain_repeats, prepared_repeats);
  setenv("WARPLOOM_TEMPLATES", templates.path, 1);
  BENCH(0, "-n", "5", "--out", results, "uniform:rows=64,d=4");
  unsetenv("WARPLOOM_TEMPLATES");
  folder_remove(&templates);
  return text_of(results);
}

TEST(prepared_candidates_have_their_own_winner) {
  FREED char *line = line_with_families(1000, 1);
  assert_json(line, {"$.candidates", "2"}, {"$.variant", "test_plain/p=1"},
              {"$.chosen_variant", "test_plain/p=1"}, /* though rules do not name these families */
              {"$.prepared_variant", "test_prepared/p=1"});
  assert_true(json_number_at(line, "$.chosen_us") > 0);
  assert_true(json_number_at(line, "$.prepared_us") < json_number_at(line, "$.us"));
  assert_true(json_number_at(line, "$.prepare_us") > 0);
  assert_true(json_number_at(line, "$.max_rel_err") < 1e-6);
  free(line);
  line = line_with_families(1, 1000); /* an unprepared kernel may also win the ranking that allows preparation */
  assert_json(line, {"$.variant", "test_plain/p=1"}, {"$.prepared_variant", "test_plain/p=1"});
  assert_true(json_number_at(line, "$.prepare_us") == 0);
  assert_true(json_number_at(line, "$.prepared_us") == json_number_at(line, "$.us"));
}

/* ---- budgets and the list of a suite --------------------------------------------------------------- */

/* The number before "of TOTAL cases are left"; 0 if the text has none. */
static int64_t left_of(const char *out, int64_t total) {
  char text[64];
  snprintf(text, sizeof text, " of %lld cases are left", (long long)total);
  const char *found = strstr(out, text);
  if (!found) return 0;
  while (found[-1] >= '0' && found[-1] <= '9') found--;
  return atoll(found);
}

TEST(budget_stops_between_cases) {
  enum { TOTAL = 8 * 16 };
  command c;
  const char *results = in_folder("budget.jsonl");
  int64_t lines = 0;
  for (int run = 0; run < 2; run++) {
    c = BENCH(0, "--budget", "1", "--out", results, "-n", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
              "uniform:rows=400,d=2", "uniform:rows=400,d=3", "uniform:rows=400,d=4", "uniform:rows=400,d=5",
              "uniform:rows=400,d=6", "uniform:rows=400,d=7", "uniform:rows=400,d=8", "uniform:rows=400,d=9");
    FREED char *text = text_of(results);
    int64_t now = count_lines(text, "\"suite\":\"core\"");
    assert_true(now > lines); /* even the shortest budget runs one case */
    assert_int_equal(now, TOTAL - left_of(c.out, TOTAL));
    lines = now;
  }
}

/* The embedded list of suite core equals the file in the source tree, and bench looks for every name in the data
 * folder. */
TEST(list_of_the_suite) {
  char results[320], empty[320], device[128], known[8192] = "",
                                              *list = text_of(WLM_SOURCE_DIR "/bench/suites/core.txt");
  static const char *const twins[] = {"twin:arxiv", "twin:proteins", "twin:products", "twin:reddit"};
  static const int widths[] = {16, 32, 64, 128, 256};
  snprintf(results, sizeof results, "%s", folder_file(&folder, "list.jsonl"));
  snprintf(empty, sizeof empty, "%s", folder_file(&folder, "empty"));
  mkdir(empty, 0777);
  command c = BENCH(0, "-n", "2", "uniform:rows=9,d=2");
  assert_int_equal(sscanf(c.out, "device: %127[^\n]", device), 1);
  for (int i = 0; i < 20; i++) /* the results file already has the twins */
    sprintf(known + strlen(known), "{\"suite\":\"core\",\"device\":\"%s\",\"matrix\":\"%s\",\"n\":%d,\"us\":1}\n",
            device, twins[i / 5], widths[i % 5]);
  write_whole(results, known, strlen(known));
  c = BENCH(1, "--data", empty, "--out", results);
  int64_t real = 0;
  for (char *line = strtok(list, "\n"); line; line = strtok(NULL, "\n")) {
    if (*line == '#' || !strncmp(line, "n ", 2)) continue;
    char message[2048];
    snprintf(message, sizeof message, "%s: neither %s/%s.mtx.gz nor %s/%s/%s.mtx.gz can be read", line, empty, line,
             empty, line, line);
    if (strchr(line, ':'))
      assert_null(strstr(c.err, line));
    else
      assert_contains(c.err, message);
    real += !strchr(line, ':');
  }
  assert_int_equal(count_lines(c.err, "can be read"), real);
  assert_true(real >= 24);
  free(list);
}

/* Every real matrix of the list is in the data folder; together they have 10 to 25 MB. */
TEST(list_fits_the_data) {
  static const char data[] = WLM_SOURCE_DIR "/../shared/data";
  FREED char *list = text_of(WLM_SOURCE_DIR "/bench/suites/core.txt");
  long long bytes = 0;
  struct stat found;
  if (stat(data, &found) != 0) {
    free(list);
    test_missing("data", "data folder", data);
  }
  for (char *line = strtok(list, "\n"); line; line = strtok(NULL, "\n")) {
    char flat[1024], deep[1024];
    if (*line == '#' || !strncmp(line, "n ", 2) || strchr(line, ':')) continue;
    snprintf(flat, sizeof flat, "%s/%s.mtx.gz", data, line);
    snprintf(deep, sizeof deep, "%s/%s/%s.mtx.gz", data, line, line);
    if (stat(flat, &found) != 0 && stat(deep, &found) != 0) fail_msg("%s is not in the data set", line);
    bytes += found.st_size;
  }
  assert_in_range(bytes, 10000000, 25000000);
}

static void write_gz(const char *path) {
  gzFile file = gzopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(gzwrite(file, matrix_text, sizeof matrix_text - 1), sizeof matrix_text - 1);
  gzclose(file);
}

TEST(finds_matrices_in_the_data) {
  write_gz(folder_file(&folder, "flat.mtx.gz"));
  mkdir(folder_file(&folder, "deep"), 0777);
  write_gz(folder_file(&folder, "deep/deep.mtx.gz"));
  command c = BENCH(0, "-n", "2", "--data", folder.path, "flat", "deep");
  assert_int_equal(count_lines(c.out, "flat, "), 1);
  assert_int_equal(count_lines(c.out, "deep, "), 1);
  c = BENCH(1, "-n", "2", "flat");
  assert_contains(c.err, "--data DIR");
  /* one error, not one for each matrix */
  c = BENCH(1, "--data", folder_file(&folder, "nowhere"), "--out", "nothing.jsonl");
  assert_contains(c.err, "nowhere: No such file or directory");
  assert_int_equal(count_lines(c.err, ""), 1);
  assert_string_equal(c.out, "");
}

/* With --json, or with - as the results file, bench prints the lines of the results file instead of the table. */
TEST(json_replaces_the_table) {
  static const char *const ways[][2] = {{"--json", NULL}, {"-o", "-"}};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    command c = RUN(0, "bench", "core", "uniform:rows=30,d=2", "--device", "host", "-n", "8,16", "--samples", "3",
                    ways[i][0], ways[i][1]);
    assert_int_equal(count_lines(c.out, "\"suite\":\"core\""), 2);
    assert_int_equal(count_lines(c.out, ""), 2);
  }
}

/* In a new home: the choice that bench core times is the one that explain gives, by the database that is shipped. */
TEST(the_choice_is_that_of_a_new_user) {
  static const char pinned[] = "host_nnz/nonzeros=8192,tile=16", matrix[] = "uniform:rows=300,d=4";
  static const char *const folders[] = {"bin", "share", "share/warploom"};
  char path[400];
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    snprintf(path, sizeof path, "%s/%s", folder.path, folders[i]);
    assert_int_equal(mkdir(path, 0700), 0);
  }
  const char *program = in_folder("bin/warploom");
  assert_int_equal(symlink(WLM_COMMAND, program), 0);
  snprintf(path, sizeof path, "%s/share/warploom/system.db", folder.path);
  command c = RUN(0, "db", "pin", matrix, pinned, "-n", "8", "--device", "host", "--db", path);
  const char *const explain[] = {program, "explain", matrix, "-n", "8", "--device", "host", "--json", NULL};
  const char *const bench[] = {program,    "bench", "core",      matrix, "-n",     "8",
                               "--device", "host",  "--samples", "3",    "--json", NULL};
  command_start(&c, &folder, explain);
  command_wait(&c);
  assert_json_at(c.out, "$[0].variant", pinned);
  command_start(&c, &folder, bench);
  command_wait(&c);
  assert_int_equal(c.code, 0);
  assert_json_at(c.out, "$.chosen_variant", pinned);
}

GROUP(home_begin, folder_end)
