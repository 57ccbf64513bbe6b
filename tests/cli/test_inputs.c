/* INPUT: a file's content decides its format, "-" is standard input, and several inputs are processed in order. */
#include "support/command.h"
#include "support/npz.h"
#include "support/test.h"

static const char matrix_text[] = "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1.5\n3 2 -2\n";

static void shell(command *c, const char *line) {
  char whole[2048];
  snprintf(whole, sizeof whole, "cd '%s' && %s", folder.path, line);
  command_start(c, &folder, (const char *const[]){"/bin/sh", "-c", whole, NULL});
  command_wait(c);
}

TEST(content_decides) {
  static const char *const lines[] = {
      "cp small.mtx graph.txt && '" WLM_COMMAND "' stats graph.txt --json",
      "cp small.mtx plain.mtx.gz && '" WLM_COMMAND "' stats plain.mtx.gz --json",
      "gzip -c small.mtx > packed && '" WLM_COMMAND "' stats packed --json",
      "'" WLM_COMMAND "' stats - --json < small.mtx",
      "sed 1s/%%/%/ small.mtx > one_percent.txt && '" WLM_COMMAND "' stats one_percent.txt --json",
      "{ printf '\\357\\273\\277\\r\\n'; cat small.mtx; } | gzip | '" WLM_COMMAND "' stats - --json",
      "printf 'weight,target,source\\n1.5,0,0\\n-2,1,2\\n' | '" WLM_COMMAND "' stats - --json",
      "gzip -c small.mtx | '" WLM_COMMAND "' stats - --json",
      "'" WLM_COMMAND "' convert small.mtx -o - | '" WLM_COMMAND "' stats - --json",
  };
  write_whole(folder_file(&folder, "small.mtx"), matrix_text, strlen(matrix_text));
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    command c;
    shell(&c, lines[i]);
    if (c.code) fail_msg("%s: %s", lines[i], c.err);
    assert_json(c.out, {"$.nnz", "2"}, {"$.longest", "1"});
  }
}

TEST(refuses_other_matrix_formats) {
  static const struct {
    const char *line, *said;
  } cases[] = {
      {"printf 'source,target\\n1,x\\n' | '" WLM_COMMAND "' stats -",
       "standard input:2: the target 'x' is not an integer"},
      {"printf '1 2\\n' > bare.mtx && '" WLM_COMMAND "' stats bare.mtx",
       "bare.mtx:1: first word '1' is not Matrix Market"},
      {"printf 'PK\\3\\4' > cut.npz && '" WLM_COMMAND "' stats cut.npz", "cut.npz: damaged zip data"},
      {"'" WLM_COMMAND "' stats - < /dev/null", "standard input:1: the file is empty"},
      {"'" WLM_COMMAND "' stats .", "Is a directory"},
      {"printf '3 3\\n2 3\\n1 3\\n1 2\\n' > ring.graph && '" WLM_COMMAND "' stats ring.graph",
       "ring.graph:1: this line seems to give the sizes of those after it, as in METIS"},
      {"touch a.mtx && tar -cf - a.mtx | gzip | '" WLM_COMMAND "' stats -", "standard input: a tar archive; unpack it"},
      {"'" WLM_COMMAND "' stats twn:arxiv", "twn:arxiv: No such file or directory; give a Matrix Market file"},
      {"echo '%%MatrixMarket matrix array real general' | '" WLM_COMMAND "' run -", "'array' is not supported"},
      {"echo '%%MatrixMarket matrix coordinate complex general' | '" WLM_COMMAND "' run -",
       "'complex' is not supported"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    command c;
    shell(&c, cases[i].line);
    if (c.code != 1 || !strstr(c.err, cases[i].said) || count_lines(c.err, "") != 1)
      fail_msg("%s: exit code %d, %s", cases[i].line, c.code, c.err);
  }
}

/* The same matrix in each format gives the same fingerprint. */
TEST(edge_lists_and_scipy_files) {
  static const char *const lines[] = {
      "printf '# SNAP\\n0\\t0\\t1.5\\n2\\t1\\t-2\\n' > edges.txt && '" WLM_COMMAND "' stats edges.txt --json",
      "printf 'source,target,weight\\n0,0,1.5\\n2,1,-2\\n' | gzip > edges.csv.gz && '" WLM_COMMAND
      "' stats edges.csv.gz --json",
      "printf '0;0\\n2;1\\n' | '" WLM_COMMAND "' stats - --json",
      "'" WLM_COMMAND "' stats a.npz --json",
      "cat a.npz | '" WLM_COMMAND "' stats - --json",
  };
  static const int64_t shape[] = {3, 3};
  static const int32_t row[] = {2, 0}, col[] = {1, 0};
  static const float value[] = {-2, 1.5F};
  npz_writer writer;
  command c;
  npz_begin(&writer, folder_file(&folder, "a.npz"), 6);
  npz_array(&writer, "format.npy", "|S3", "()", "coo", 3);
  npz_array(&writer, "shape.npy", "<i8", "(2,)", shape, sizeof shape);
  npz_array(&writer, "row.npy", "<i4", "(2,)", row, sizeof row);
  npz_array(&writer, "col.npy", "<i4", "(2,)", col, sizeof col);
  npz_array(&writer, "data.npy", "<f4", "(2,)", value, sizeof value);
  npz_end(&writer);
  write_whole(folder_file(&folder, "small.mtx"), matrix_text, strlen(matrix_text));
  shell(&c, "'" WLM_COMMAND "' stats small.mtx --json");
  FREED char *expected = json_at(c.out, "$.fingerprint");
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    shell(&c, lines[i]);
    if (c.code) fail_msg("%s: %s", lines[i], c.err);
    assert_json_at(c.out, "$.fingerprint", expected);
  }
  c = RUN(0, "run", folder_file(&folder, "a.npz"), "-n", "8", "--device", "host", "--check");
  assert_contains(c.out, "verified");
}

/* ./demo refuses a wrong file before it builds, which would take longer than the time limit here. */
TEST(demo_checks_its_file_first) {
  static const struct {
    const char *make, *said;
  } cases[] = {
      {"rm -f wrong", "wrong: no such file"},
      {"rm -f wrong; mkdir wrong", "wrong: no such file"},
      {"rmdir wrong; : > wrong", "wrong: the file is empty"},
      {"echo hello > wrong", "wrong: neither Matrix Market, nor"},
      {"printf '\\037\\213no gzip' > wrong", "wrong: neither Matrix Market, nor"},
      {"echo '{\"a\": [1, 2]}' > wrong", "wrong: neither Matrix Market, nor"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[1024];
    command c;
    snprintf(line, sizeof line, "{ %s; } && timeout 10 '" WLM_SOURCE_DIR "/demo' wrong", cases[i].make);
    shell(&c, line);
    if (c.code != 1 || !strstr(c.err, cases[i].said)) fail_msg("%s: exit code %d, %s", line, c.code, c.err);
    assert_string_equal(c.out, "");
  }
}

/* A pipe can be read once only: from its begin to its end, without opening it again. */
TEST(pipes_are_read_once) {
  static const char *const commands[] = {"stats",
                                         "run -n 8 --device host",
                                         "explain -n 8 --device host",
                                         "tune -n 8 --device host --budget 0.1s",
                                         "compare -n 8 --device host",
                                         "bench core -n 8 --device host --samples 3",
                                         "convert -o converted.mtx"};
  static const char *const sources[] = {"mkfifo pipe; { cat small.mtx > pipe & } && %s pipe",
                                        "mkfifo pipe; { gzip -c small.mtx > pipe & } && %s pipe",
                                        "cat small.mtx | %s /dev/stdin",
                                        "%s /dev/stdin < small.mtx",
                                        "%s /dev/fd/7 7< small.mtx",
                                        "gzip -c small.mtx | %s -"};
  write_whole(folder_file(&folder, "small.mtx"), matrix_text, strlen(matrix_text));
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    for (size_t k = 0; k < sizeof sources / sizeof *sources; k++) {
      char line[512], called[256];
      command c;
      snprintf(called, sizeof called, "timeout 60 '" WLM_COMMAND "' %s", commands[i]);
      snprintf(line, sizeof line, sources[k], called);
      shell(&c, line);
      if (c.code) fail_msg("%s: exit code %d, %s", line, c.code, c.err);
      remove(folder_file(&folder, "pipe"));
    }
}

TEST(files_of_lines_may_be_pipes) {
  static const char *const lines[] = {
      "mkfifo lines; { printf '{\"warploom\":\"tuned\",\"version\":1}\\n' > lines & } && timeout 60 '" WLM_COMMAND
      "' import lines --db imported.db",
      "printf '{\"warploom\":\"tuned\",\"version\":1}\\n' | timeout 60 '" WLM_COMMAND
      "' import /dev/stdin --db imported.db",
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    command c;
    shell(&c, lines[i]);
    if (c.code) fail_msg("%s: exit code %d, %s", lines[i], c.code, c.err);
  }
}

/* With --json each input gives one line. */
TEST(several_inputs) {
  static const char *const commands[] = {"stats", "run", "explain", "compare"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    const char *argv[] = {
        WLM_COMMAND, commands[i], "uniform:rows=30,d=2", "uniform:rows=40,d=2", "--json", "-n", "8", "--device",
        "host",      NULL};
    command c;
    if (!i) argv[5] = NULL; /* stats has no option -n */
    command_start(&c, &folder, argv);
    command_wait(&c);
    if (c.code) fail_msg("%s: %s", commands[i], c.err);
    assert_int_equal(count_lines(c.out, ""), 2);
    for (int k = 0; k < 2; k++) {
      FREED char *line = line_of(c.out, k);
      assert_true(json_is_valid(line));
      assert_contains(line, k ? "40" : "30");
    }
  }
  command c = RUN(0, "explain", "uniform:rows=30,d=2", "uniform:rows=40,d=2", "-n", "8", "--device", "host");
  assert_contains(c.out, "input     uniform:rows=30,d=2\n", "\n\ninput     uniform:rows=40,d=2\n");
  c = RUN(2, "stats", "-", "-");
  assert_contains(c.err, "stats: '-' is standard input, which can be read once");
}

/* Inputs that cannot be read are named at the end, and the others are done; tune reports them before it measures. */
TEST(unreadable_inputs_are_left_out) {
  static const char *const commands[] = {"stats", "run -n 8 --device host", "explain -n 8 --device host",
                                         "compare -n 8 --device host", "tune -n 8 --device host --budget 0.1s"};
  static const char last[] =
      "warploom: 3 of 5 inputs cannot be read and were left out: wrong.txt, none.mtx, twin:none\n";
  write_whole(folder_file(&folder, "small.mtx"), matrix_text, strlen(matrix_text));
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    for (int json = 0; json < 2; json++) {
      char line[512];
      command c;
      snprintf(line, sizeof line,
               "printf '1 x\\n' > wrong.txt; '" WLM_COMMAND
               "' %s wrong.txt small.mtx none.mtx twin:none "
               "uniform:rows=30,d=2 %s",
               commands[i], json ? "--json" : "");
      shell(&c, line);
      const size_t size = strlen(c.err), cut = sizeof last - 1;
      if (c.code != 1 || size < cut || strcmp(c.err + size - cut, last)) fail_msg("%s: %d, %s", line, c.code, c.err);
      assert_contains(c.err, "warploom: wrong.txt:1: the target 'x' is not an integer");
      const char *measured = strstr(c.err, "tune small");
      assert_true(!measured || measured > strstr(c.err, "warploom: twin:none: no such twin"));
      if (json && i < 4) assert_int_equal(count_lines(c.out, ""), 5);
      if (!json) assert_contains(c.out, "small.mtx\n");
      if (!json) assert_contains(c.out, "uniform:rows=30,d=2\n");
      if (json) assert_contains(c.out, "{\"input\":\"none.mtx\",\"error\":\"none.mtx: No such file");
    }
  command c;
  shell(&c, "'" WLM_COMMAND "' tune none.mtx wrong.txt -n 8 --device host");
  assert_int_equal(c.code, 1);
  assert_contains(c.err, "2 of 2 inputs cannot be read");
}

GROUP(home_begin, folder_end)
