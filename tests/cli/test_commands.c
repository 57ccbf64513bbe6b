/* Every command through the real binary, in the order in which a user meets them. */
#include "support/command.h"
#include "support/test.h"

static const char matrix_text[] =
    "%%MatrixMarket matrix coordinate real general\n5 6 7\n1 1 1.5\n1 3 2\n2 2 -1\n4 6 4\n4 1 3\n4 2 0.5\n5 5 1\n";

/* A matrix file in the test's folder. The returned path is valid until the next call. */
static const char *small_matrix(void) {
  const char *path = folder_file(&folder, "small.mtx");
  write_whole(path, matrix_text, strlen(matrix_text));
  return path;
}

TEST(info) {
  command c = RUN(0, "info");
  assert_contains(c.out, wlm_version_string());
  assert_contains(c.out, folder.path); /* the databases' paths */
  assert_contains(c.out, "host");
  c = RUN(0, "info", "--json");
  assert_true(json_is_valid(c.out));
  assert_json(c.out, {"$.version", wlm_version_string()}, {"$.measurements", "0"});
  c = RUN(0, "info", "--device", "host", "--json");
  assert_json_at(c.out, "$.devices[0].device", "host");
  assert_null(json_at(c.out, "$.devices[1]"));
}

TEST(help) {
  static const char *const commands[] = {"info", "stats",   "convert", "show",   "tune", "train",
                                         "run",  "explain", "export",  "import", "db",   "bench"};
  command c = RUN(0, "--help");
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    assert_contains(c.out, commands[i]);
    command one = RUN(0, commands[i], "--help");
    assert_contains(one.out, "usage:\n  warploom ", "--help");
  }
  c = RUN(0, "--version");
  assert_contains(c.out, wlm_version_string());
}

TEST(stats) {
  command c = RUN(0, "stats", small_matrix());
  assert_contains(c.out, "empty_rows   1\n");
  c = RUN(0, "stats", small_matrix(), "--json");
  assert_true(json_is_valid(c.out));
  assert_json(c.out, {"$.rows", "5"}, {"$.cols", "6"}, {"$.nnz", "7"}, {"$.longest", "3"}, {"$.values", "1"});
}

/* The converted file has the same fingerprint. */
TEST(convert) {
  static const char *const inputs[] = {"small.mtx", "synth:rows=50,d=3.5,cv=1"};
  small_matrix();
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
    const char *input = strchr(inputs[i], ':') ? inputs[i] : folder_file(&folder, inputs[i]);
    command before, after, c;
    before = RUN(0, "stats", input, "--json");
    FREED char *copy = strdup(folder_file(&folder, "copy.mtx"));
    c = RUN(0, "convert", strchr(inputs[i], ':') ? inputs[i] : small_matrix(), "-o", copy, "--json");
    assert_json_at(c.out, "$.file", copy);
    after = RUN(0, "stats", copy, "--json");
    FREED char *fingerprint = json_at(before.out, "$.fingerprint"), *nnz = json_at(before.out, "$.nnz");
    assert_json_at(after.out, "$.fingerprint", fingerprint);
    assert_json_at(c.out, "$.nnz", nnz);
  }
}

TEST(show) {
  command c = RUN(0, "show", "--list");
  assert_contains(c.out, "row_crc", "host_row", "carry");
  c = RUN(0, "show", "--list", "--json");
  assert_json(c.out, {"$[0].family", "host_nnz"}, {"$[0].parameters.tile[0]", "16"});
  c = RUN(0, "show", "row_crc/cf=2,rows=8", "--json");
  assert_json_at(c.out, "$.variant", "row_crc/cf=2,rows=8");
  assert_true(json_is_valid(c.out));
  c = RUN(0, "show", "row_crc/cf=2,rows=8", "--target", "cuda");
  assert_contains(c.out, "struct wlm_args {", "wlm_row_crc");
  c = RUN(0, "show", "host_row/rows=16,tile=32"); /* the target follows from the family */
  assert_contains(c.out, "WLM_KERNEL(wlm_host_row)");
  c = RUN(0, "show", "row_crc", "-n", "64"); /* a family name stands for one of its variants */
  assert_contains(c.out, "wlm_row_crc");
  RUN(0, "show", "row_sample/s=64,threads=64,rows=4", "--help");
  RUN(1, "show", "row_crc/cf=2,rows=8", "--target", "host");
}

TEST(tune_run_explain) {
  command c = RUN(0, "tune", small_matrix(), "uniform:rows=300,d=9", "-n", "16,33", "--device", "host", "--op", "mean");
  assert_contains(c.out, "small.mtx", "host_row/rows=16,tile=32", "\n* ", "choice");
  assert_true(count_lines(c.err, "tune small n=33") > 2); /* plain progress lines */

  c = RUN(0, "run", small_matrix(), "-n", "16,33", "--device", "host", "--op", "mean", "--check");
  const char *last = strstr(c.out, "verified: max_rel_err=");
  assert_non_null(last);
  assert_string_equal(strchr(last, '\n'), "\n"); /* it is the last line */
  assert_contains(c.out, "fingerprint");

  c = RUN(0, "run", small_matrix(), "-n", "16", "--device", "host", "--json", "--check", "--variant",
          "host_nnz/nonzeros=1024,tile=16");
  assert_true(json_is_valid(c.out));
  assert_json(c.out, {"$.runs[0].variant", "host_nnz/nonzeros=1024,tile=16"}, {"$.runs[0].step", "named"},
              {"$.verified", "1"});

  /* A family name stands for its fastest measured variant. */
  c = RUN(0, "explain", small_matrix(), "-n", "16", "--device", "host", "--op", "mean", "--json");
  char *chosen = json_at(c.out, "$[0].variant"), family[64];
  snprintf(family, sizeof family, "%.*s", (int)strcspn(chosen, "/"), chosen);
  c = RUN(0, "run", small_matrix(), "-n", "16", "--device", "host", "--op", "mean", "--variant", family, "--json");
  assert_json_at(c.out, "$.runs[0].variant", chosen);
  free(chosen);

  c = RUN(0, "explain", small_matrix(), "-n", "16,33", "--device", "host", "--op", "mean");
  assert_int_equal(count_lines(c.out, "fingerprint: this very matrix was tuned"), 2);
  c = RUN(0, "explain", small_matrix(), "-n", "16,33", "--device", "host", "--json");
  assert_true(json_is_valid(c.out)); /* this problem was not tuned */
  assert_json_at(c.out, "$[1].n", "33");

  c = RUN(0, "tune", small_matrix(), "-n", "8", "--device", "host", "--json", "--budget", "60s", "--sample",
          "bucket:8:kept", "--seed", "7");
  assert_true(json_is_valid(c.out));
  assert_json(c.out, {"$.inputs[0].tuned[0].n", "8"}, {"$.inputs[0].tuned[0].candidates[0].failed", "0"});

  c = RUN(0, "run", small_matrix(), "-n", "8", "--device", "host", "--check", "--json", "--sample",
          "fastrand:8:none:18446744073709551615");
  assert_json_at(c.out, "$.verified", "1");
  assert_json_at(c.out, "$.runs[0].kept_share", "1"); /* no row has more edges than the sample keeps */
  c = RUN(0, "run", "uniform:rows=100,d=20", "-n", "8", "--device", "host", "--sample", "bucket:8");
  assert_contains(c.out, "kept_share   0.400\n");
}

/* Export and import: the measurements reach another database, and exporting them again gives the same text. */
TEST(export_import) {
  const char *file = in_folder("learned.jsonl"), *again = in_folder("again.jsonl"), *other = in_folder("other.db");
  RUN(0, "export", "-o", file, "--format", "jsonl");
  command c = RUN(0, "import", file, "--db", other, "--json");
  assert_true(json_is_valid(c.out));
  c = RUN(0, "import", file, "--db", other, "--json");
  assert_json_at(c.out, "$.added", "0");
  RUN(0, "export", "--db", other, "-o", again);
  FREED char *first = text_of(file), *second = text_of(again);
  assert_true(count_lines(first, "host_row") > 2);
  assert_string_equal(first, second);
  c = RUN(0, "export", "-o", "-");
  assert_string_equal(c.out, first);

  c = RUN(0, "db", "list");
  assert_contains(c.out, "op=mul.mean");
  c = RUN(0, "db", "list", "--json", "--db", other);
  assert_true(json_is_valid(c.out));
  assert_json_at(c.out, "$.choices[0].failed", "0");
  c = RUN(0, "db", "check");
  assert_contains(c.out, "ok");
}

/* A user-defined operator with an epilogue: tuned, run, explained and listed. */
TEST(users_operators) {
  static const char op[] = "message=fmaxf(a*b, 0); init=0; reduce=acc+x; combine=reduce; finish=acc/degree";
  command c = RUN(0, "show", "row_crc/cf=1,rows=4", "--op", op, "--epilogue", "relu", "--bias");
  assert_contains(c.out, "#line 1 \"op:message\"\nfmaxf(a*b,0.f); }", "#line 1 \"op:activation\"\nwlm_relu(x); }",
                  "args->bias");
  RUN(0, "tune", "uniform:rows=300,d=4", "--device", "host", "-n", "8", "--op", op, "--epilogue", "relu", "--bias");
  c = RUN(0, "run", "uniform:rows=300,d=4", "--device", "host", "-n", "8", "--op", op, "--epilogue", "x/(1+exp(-x))",
          "--bias", "--check");
  assert_contains(c.out, "fingerprint"); /* an epilogue does not change the choice */
  assert_contains(c.out, "verified: ");
  c = RUN(0, "explain", "uniform:rows=300,d=4", "--device", "host", "-n", "8", "--op", op);
  assert_contains(c.out,
                  "op=custom{message=fmax(a*b,0);init=0;reduce=acc+x;combine=reduce;finish=acc/degree},dense=f32");
  c = RUN(0, "db", "list");
  assert_contains(c.out, "op=custom{message=fmax(a*b,0);");
}

/* Transposes, gradients of the values and argmax indices are tuned, checked, stored separately and reported. */
TEST(tunes_the_problems_of_training) {
  static const char *const ways[][4] = {{"--transpose", "--op", "max", "transpose=1"},
                                        {"--operation=sddmm", "--op", "div.mean", "operation=sddmm"},
                                        {"--arg=i64", "--op", "copy_b.min", ",arg=i64"}};
  static const char *const told[][2] = {
      {"host_row/", "transpose_us"}, {"sddmm_host/", "checked_edges 7"}, {"host_row/", "checked_rows"}};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    const char *const *way = ways[i];
    command c = RUN(0, "tune", small_matrix(), "-n", "12", "--device", "host", way[0], way[1], way[2]);
    assert_contains(c.out, told[i][0]);
    c = RUN(0, "run", small_matrix(), "-n", "12", "--device", "host", way[0], way[1], way[2], "--check");
    assert_contains(c.out, told[i][1], "verified: max_rel_err=");
    c = RUN(0, "explain", small_matrix(), "-n", "12", "--device", "host", way[0], way[1], way[2]);
    assert_contains(c.out, "this very matrix was tuned", way[3]);
  }
}

TEST(every_option_of_a_problem) {
  command c = RUN(0, "run", small_matrix(), "-n", "12", "--device", "host", "--check", "--op", "max", "--empty",
                  "identity", "--rowptr", "i64", "--colind", "i64", "--alpha", "-1.5", "--beta", "0.5", "--ldb", "17",
                  "--ldc", "13", "--deterministic");
  assert_contains(c.out, "verified: max_rel_err=");
  c = RUN(0, "explain", small_matrix(), "-n", "12", "--device", "host", "--op", "max", "--empty", "identity",
          "--rowptr", "i64", "--colind", "i64");
  assert_contains(c.out, "op=mul.max,dense=f32,rowptr=i64,colind=i64,values=f32,sample=none,empty=identity");
  c = RUN(0, "show", "row_crc/cf=2,rows=8", "-n", "64", "--rowptr", "i64", "--op", "max", "--empty", "identity",
          "--deterministic");
  assert_contains(c.out, "typedef long long wlm_rowptr_t;\ntypedef int wlm_colind_t;\n", "degree == 0 ? acc : acc");
}

GROUP(home_begin, folder_end)
