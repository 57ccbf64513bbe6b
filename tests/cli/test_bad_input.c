/* Errors in the command line, in files and in databases: each gives one clear line and the right exit code, and no data
 * is lost. */
#include <sys/stat.h>
#include <unistd.h>

#include "support/command.h"
#include "support/test.h"

enum { MOST = 10 };

typedef struct bad_line {
  int code;
  const char *said; /* stderr must contain this */
  const char *arguments[MOST];
} bad_line;

#define TWIN "uniform:rows=20,d=2"

static const bad_line lines[] = {
    {2, "usage", {NULL}},
    {2, "unknown command 'bake'; warploom --help lists the commands, python -m bench --help", {"bake"}},
    {2, "unknown command 'tnue'; did you mean 'tune'? warploom --help lists", {"tnue", TWIN}},
    {2, "unknown command 'statss'; did you mean 'stats'? ", {"help", "statss"}},
    {2, "unknown command 'xy'; warploom --help lists", {"xy"}},
    {2,
     "unknown option '--budgt'; did you mean '--budget'? warploom tune --help lists",
     {"tune", TWIN, "--budgt", "3s"}},
    {2, "unknown option '--devcie=host'; did you mean '--device'? ", {"tune", TWIN, "--devcie=host"}},
    {2, "unknown option '--colour'; warploom info --help lists", {"info", "--colour"}},
    {2, "unknown option", {"info", "-x"}},
    {2, "value is missing after '--db'", {"info", "--db"}},
    {2, "one argument too many", {"info", "extra"}},
    {2, "name a matrix", {"stats"}},
    {2, "'b.mtx' is one argument too many", {"convert", "a.mtx", "b.mtx", "-o", "c.mtx"}},
    {2, "name a matrix", {"run", "--check"}},
    {2, "stats: takes no option '--check'", {"stats", "--check", TWIN}},
    {2, "-n must be 1 to 2147483647, not x", {"explain", TWIN, "-n", "x"}},
    {2, "-n must be 1 to 2147483647, not 16,", {"explain", TWIN, "-n", "16,"}},
    {2, "-n must be 1 to 2147483647, not -3", {"explain", TWIN, "-n", "-3"}},
    {2, "-n must be 1 to 2147483647, not 0", {"explain", TWIN, "-n", "0"}},
    {2, "--width must be 1 to 2147483647, not 99999999999", {"explain", TWIN, "--width=99999999999"}},
    {2, "-n: at most 16 numbers", {"explain", TWIN, "-n", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"}},
    {2, "--op must be [MESSAGE.]REDUCE with MESSAGE mul,", {"run", TWIN, "--op", "median"}},
    {2, "--op must be", {"run", TWIN, "--op", "pow.sum"}},
    {2, "--op must be", {"run", TWIN, "--op", "mul."}},
    {2, "not custom", {"run", TWIN, "--op", "custom"}},
    {2, "op:reduce, column 5 of 'acc+y': 'y' is not known", {"run", TWIN, "--op", "init=0;reduce=acc+y"}},
    {2, "'a' is no part of an operator", {"show", "row_naive", "--op", "a=b"}},
    {2, "op: init is missing", {"tune", TWIN, "--op", "reduce=acc+x"}},
    {2, "op:activation, column 1 of 'swish': 'swish' is not known", {"run", TWIN, "--epilogue", "swish"}},
    {2,
     "run: --message: sum, column 8 of 'relu(b+q)': 'q' is not known here; the operands of sum are: a, b, e, k, x, y, ",
     {"run", TWIN, "--message", "relu(b+q)"}},
    {2,
     "--message: max, column 1 of 'swish(b)': 'swish' is not known here",
     {"run", TWIN, "--message", "swish(b)", "--op", "max"}},
    {2, "--message: operand x: 'node' is no place; places are", {"run", TWIN, "--message", "x:node;sum=x"}},
    {2, "--message: operand x: '2' is no width of row; widths are", {"run", TWIN, "--message", "x:row:2;sum=x"}},
    {2, "--message: 'total' is no result; results are sum, mean,", {"run", TWIN, "--message", "total=b"}},
    {2, "--message: sum: 1e+39 is beyond the range of float", {"run", TWIN, "--message", "b*1e39"}},
    {2, "--message must be an expression such as 'relu(b+e)'", {"run", TWIN, "--message", ""}},
    {2, "--message: sum, column 6 of 'relu('", {"run", TWIN, "--message", "relu("}},
    {2, "--op beside a --message that names its reductions", {"run", TWIN, "--message", "sum=b", "--op", "max"}},
    {2, "--op with a message of its own beside --message", {"run", TWIN, "--message", "b", "--op", "copy_b.max"}},
    {2,
     "--op with a message of its own beside --message",
     {"run", TWIN, "--message", "b", "--op", "init=0;reduce=acc+x"}},
    {2, "--message and --operation name two operations", {"run", TWIN, "--message", "b", "--operation", "sddmm"}},
    {2,
     "the NORM of --sample with the result max has no meaning; leave it out",
     {"run", TWIN, "--message", "max=b", "--sample", "bucket:8:kept"}},
    {2, "--message with an epilogue has results of rows alone", {"run", TWIN, "--message", "edge=b", "--bias"}},
    {2, "--alpha and --beta do not apply to --message", {"run", TWIN, "--message", "b", "--beta", "1"}},
    {2, "--empty does not apply to --message", {"run", TWIN, "--message", "b", "--empty", "identity"}},
    {2, "--arg needs a result max or min", {"run", TWIN, "--message", "b", "--arg", "i32"}},
    {2,
     "--heads is 3, must be 1 or more and divide n = 32",
     {"run", TWIN, "--message", "b", "--heads", "3", "-n", "32"}},
    {2, "db list: takes no option '--message'", {"db", "list", "--message", "b"}},
    {2, "unknown option", {"run", TWIN, "--bias=3"}},
    {2, "--arg must be i32, i64 or i16, not i8", {"run", TWIN, "--op", "max", "--arg", "i8"}},
    {2, "run: --arg needs the reduction max or min", {"run", TWIN, "--device", "host", "--arg", "i32"}},
    {2, "--type must be f32, f16, bf16 or f64, not f8", {"run", TWIN, "--type", "f8"}},
    {2, "--sample must be bucket, fastrand or fastrand_coprime, then", {"run", TWIN, "--sample", "bucket"}},
    {2, "--sample must be", {"run", TWIN, "--sample", "bucket:4"}},
    {2, "--sample must be", {"run", TWIN, "--sample", "bucket:64:some"}},
    {2, "--sample must be", {"run", TWIN, "--sample", "none:64"}},
    {2, "--sample must be", {"run", TWIN, "--sample", "bucket:64:kept:more"}},
    {2, "--sample must be", {"run", TWIN, "--sample", "bucket:64:kept:7:8"}},
    {2, "--sample must be", {"run", TWIN, "--sample", "bucket::64"}},
    {2, "--sample must be", {"run", TWIN, "--sample", "bucket:64:"}},
    {2, "--empty must be zero or identity, not one", {"run", TWIN, "--empty", "one"}},
    {2, "--rowptr must be i32 or i64, not i16", {"run", TWIN, "--rowptr", "i16"}},
    {2, "--colind must be i32 or i64, not f32", {"tune", TWIN, "--colind", "f32"}},
    {2, "--alpha must be a finite number, not 2x", {"run", TWIN, "--alpha", "2x"}},
    {2, "--beta must be a finite number, not inf", {"run", TWIN, "--beta", "inf"}},
    {2, "--ldb must be 1 to 2147483647, not 0", {"run", TWIN, "--ldb", "0"}},
    {2, "--ldc must be at least n = 32, not 3", {"run", TWIN, "--device", "host", "--ldc", "3"}},
    {2, "--heads is 3, must be 1 or more and divide n = 32", {"tune", TWIN, "--heads", "3", "-n", "32"}},
    {2, "--operation sddmm with transpose", {"explain", TWIN, "--operation", "sddmm", "--transpose"}},
    {2, "--budget must be a time above 0, as in 60s or 2m, not '2 m'", {"bench", "core", TWIN, "--budget", "2 m"}},
    {2, "--keep must be 1 or more, not 0", {"db", "prune", "--keep", "0"}},
    {2, "--data must be a path, not ''", {"bench", "core", "--data", ""}},
    {2, "--budget must be a time above 0, as in 60s or 2m, not -1", {"tune", TWIN, "--budget", "-1"}},
    {2, "--budget must be", {"tune", TWIN, "--budget", "0"}},
    {2, "--budget must be", {"tune", TWIN, "--budget", "nan"}},
    {2, "not '5 parsecs'", {"tune", TWIN, "--budget", "5 parsecs"}},
    {2, "--seed must be 0 to 18446744073709551615, not -1", {"tune", TWIN, "--seed", "-1"}},
    {2, "--seed must be", {"tune", TWIN, "--seed", "99999999999999999999999"}},
    {2, "say --list", {"show"}},
    {2, "show --list: 'row_naive' is one argument too many", {"show", "row_naive", "--list"}},
    {2, "show --list: takes no option '-n'", {"show", "--list", "-n", "8"}},
    {2, "tune: takes no option '--calls'", {"tune", "--calls", "9"}},
    {2, "tune --recorded: takes no option '--op'", {"tune", "--recorded", "--op", "max"}},
    {2, "tune --recorded: takes no option '-n'", {"tune", "-n", "8", "--recorded"}},
    {2, "tune --recorded: 'a.mtx' is one argument too many", {"tune", "a.mtx", "--recorded"}},
    {2, "--target must be cuda or host, not fpga", {"show", "row_naive", "--target", "fpga"}},
    {1, "it has no variant for this problem and --target", {"show", "row_crc", "--target", "host"}},
    {2, "-o FILE", {"export"}},
    {2, "--format must be jsonl or c, not xml", {"export", "-o", "x", "--format", "xml"}},
    {2, "name the file", {"import"}},
    {2, "--arch must be numbers such as 80,90, not '80,'", {"kernels", "build", "-o", "x", "--arch", "80,"}},
    {2,
     "--system and --db name two databases",
     {"export", "-o", "x", "--format", "c", "--arch", "host", "--system", "--db", "x.db"}},
    {2, "-o -: an archive is not written to standard output; name a file", {"kernels", "build", "-o", "-"}},
    {1, "no/such/x.archive: cannot open for writing: No such", {"kernels", "build", "-o", "no/such/x.archive"}},
    {1, "/tmp: cannot open for writing: Is a directory", {"kernels", "build", "-o", "/tmp"}},
    {2, "say list, candidates, check, merge, diff, prune, pin or unpin", {"db"}},
    {2, "unknown action 'burn'", {"db", "burn"}},
    {2, "db check: 'a.db' is one argument too many; name a database by --db a.db", {"db", "check", "a.db"}},
    {2, "train: 'a.db' is one argument too many; name a database by --db a.db", {"train", "a.db"}},
    {1, "no-such.db: no such file", {"db", "prune", "--db", "no-such.db"}},
    {1,
     "no-such.db: no such file",
     {"db", "unpin", "v1 rows=8 mean=4 cv=0", "-n", "8", "-d", "host", "--db", "no-such.db"}},
    {2, "db list: takes no option", {"db", "list", "--repair", "--keep", "3", "-n", "7", "-d", "nosuch"}},
    {2, "db list: takes no option '-n'", {"db", "-n", "7", "list"}},
    {2, "db list: 'more' is one argument too many", {"db", "list", "more"}},
    {2, "db merge: takes no option '--db'", {"db", "merge", "a", "b", "-o", "c", "--db", "d"}},
    {2, "db merge: say where to with -o FILE", {"db", "merge", "a", "b"}},
    {2, "db merge: an argument is missing; name two databases", {"db", "merge", "a", "-o", "c"}},
    {2, "export: takes no option '-d'", {"export", "-d", "nosuch", "-o", "x"}},
    {2, "unknown command 'report'; warploom --help lists the commands, python -m bench", {"report"}},
    {2, "bench: takes no option '--check'", {"bench", "core", TWIN, "--check"}},
    {2, "bench: --samples must be 1 to 10000, not 0", {"bench", "core", TWIN, "--samples", "0"}},
    {2, "bench: --budget must be a time above 0", {"bench", "core", TWIN, "--budget", "0"}},
    {2, "unknown suite bake; warploom bench --help", {"bench", "bake", TWIN}},
    {2, "unknown suite croe; did you mean 'core'? warploom bench --help", {"bench", "croe", TWIN}},
    {2, "name a suite", {"bench"}},
    {2, "unknown suite summary; warploom bench --help lists them, python -m bench", {"bench", "summary", "x"}},
    {1, "--device tpu: is not there", {"info", "--device", "tpu"}},
    {2, "no family 'row_magic'", {"show", "row_magic/cf=2"}},
    {2, "must be one of", {"show", "row_crc/cf=3,rows=8"}},
    {1, "no/such/file.mtx", {"stats", "no/such/file.mtx"}},
    {1, "no/such/copy.mtx", {"convert", "uniform:rows=2,d=1", "-o", "no/such/copy.mtx"}},
    {2, "facebook", {"stats", "twin:facebook"}},
    {2, "rows", {"stats", "uniform:rows=-1,d=2"}},
};

static void run_line(const bad_line *line) {
  const char *argv[MOST + 2] = {WLM_COMMAND};
  command c;
  for (int i = 0; i < MOST && line->arguments[i]; i++) argv[i + 1] = line->arguments[i];
  command_start(&c, &folder, argv);
  command_wait(&c);
  if (c.code != line->code || !strstr(c.err, line->said))
    fail_msg("warploom %s %s: exit code %d, expected %d and \"%s\" in:\n%s", argv[1], argv[1] ? argv[2] : NULL, c.code,
             line->code, line->said, c.err);
  if (line->arguments[0] && count_lines(c.err, "") - count_lines(c.err, "warploom: warning: ") != 1)
    fail_msg("warploom %s says more than one line:\n%s", argv[1], c.err);
  if (line->code == 2 && *c.out) fail_msg("warploom %s begins all the same:\n%s", argv[1], c.out);
}

TEST(bad_command_lines) {
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) run_line(&lines[i]);
}

TEST(bad_files) {
  static const struct {
    const char *name, *content, *said;
  } files[] = {
      {"empty.mtx", "", "empty.mtx"},
      {"array.mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n", "array.mtx:1"},
      {"complex.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "complex.mtx:1"},
      {"short.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1\n", "short.mtx"},
      {"range.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 1\n4 1 1\n", "range.mtx:3"},
      {"word.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 x 1\n", "word.mtx:3"},
      {"packed.mtx.gz", "\x1f\x8b\x08 not really", "packed.mtx.gz"},
  };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    const char *path = folder_file(&folder, files[i].name);
    write_whole(path, files[i].content, strlen(files[i].content));
    run_line(&(bad_line){1, files[i].said, {"stats", path}});
    run_line(&(bad_line){1, files[i].said, {"explain", path, "--device", "host"}});
  }
}

TEST(bad_devices_and_types) {
  run_line(&(bad_line){2, "tpu", {"explain", TWIN, "--device", "tpu"}});
  run_line(&(bad_line){2, "--type", {"explain", TWIN, "--device", "host", "--type", "f8"}});
  run_line(&(bad_line){2,
                       "the NORM of --sample with a reduce other than sum",
                       {"explain", TWIN, "--device", "host", "--op", "max", "--sample", "bucket:8:unbiased"}});
  run_line(&(bad_line){2, "row_crc", {"run", TWIN, "--device", "host", "--variant", "row_crc/cf=1,rows=8"}});
  run_line(&(bad_line){2, "means no database", {"db", "check", "--db", ""}});
  run_line(&(bad_line){2, "database", {"tune", TWIN, "--device", "host", "--db", ""}});
}

/* A database of another program and a file that is not a database are refused and stay unchanged. */
TEST(bad_databases) {
  static const char foreign[] = "These are my notes, and no database.\n";
  const char *path = in_folder("notes.txt");
  write_whole(path, foreign, strlen(foreign));
  run_line(&(bad_line){1, "notes.txt", {"db", "check", "--db", path}});
  run_line(&(bad_line){1, "notes.txt", {"tune", TWIN, "--device", "host", "-n", "8", "--db", path}});
  run_line(&(bad_line){1, "notes.txt", {"export", "-o", "-", "--db", path}});
  FREED char *now = text_of(path);
  assert_string_equal(now, foreign);
  path = in_folder("missing.db");
  run_line(&(bad_line){1, "missing.db", {"db", "list", "--db", path}});
  assert_int_equal(access(path, F_OK), -1); /* the refused command created no file */
}

/* If the database cannot be read, a product runs with the rules and a warning. */
TEST(broken_database_degrades) {
  const char *path = in_folder("notes.txt");
  write_whole(path, "nothing", 7);
  command c = RUN(0, "run", TWIN, "--device", "host", "-n", "8", "--check", "--db", path);
  assert_contains(c.err, "warning", "notes.txt");
  assert_contains(c.out, "rule", "verified: ");
}

TEST(bad_import) {
  const char *path = in_folder("import.jsonl"), *database = in_folder("imported.db");
  write_whole(path, "{\"what\":\n", 9);
  run_line(&(bad_line){1, "not-there.jsonl", {"import", "not-there.jsonl", "--db", database}});
  run_line(&(bad_line){1, "import.jsonl:1", {"import", path, "--db", database}});
  assert_int_equal(access(database, F_OK), -1); /* no database is made for them */
}

TEST(bad_templates) {
  setenv("WARPLOOM_TEMPLATES", "/no/such/folder", 1);
  run_line(&(bad_line){1, "/no/such/folder", {"show", "--list"}});
  run_line(&(bad_line){1, "/no/such/folder", {"explain", TWIN, "--device", "host"}});
  run_line(&(bad_line){1, "/no/such/folder", {"export", "-o", "x", "--format", "c", "--arch", "host"}});
  unsetenv("WARPLOOM_TEMPLATES");
}

TEST(full_output) {
  if (access("/dev/full", W_OK)) skip();
  static const char *const arguments[] = {"info", "stats " TWIN, "show --list", "--help"};
  for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
    char line[1024];
    snprintf(line, sizeof line, "'%s' %s >/dev/full 2>'%s/full'", WLM_COMMAND, arguments[i], folder.path);
    assert_int_not_equal(system(line), 0);
    FREED char *said = text_of(folder_file(&folder, "full"));
    assert_contains(said, "standard output");
  }
}

/* A name that would clear the screen, set the window's title, or forge a line. */
#define EVIL                              \
  "ev\x1b[2J\x1b]0;title\x07il\n\xc2\x9b" \
  "31m"

static void assert_printable(const char *what, const char *text) {
  for (const char *at = text; *at; at++)
    if (((unsigned char)*at < 0x20 && *at != '\n') || *at == 0x7f || !strncmp(at, "\xc2\x9b", 2))
      fail_msg("%s prints the character %d:\n%s", what, *at, text);
}

TEST(names_are_shown_with_escapes) {
  static const char matrix[] = "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1\n";
  static const char *const arguments[][9] = {
      {"stats", EVIL ".mtx"},
      {"stats", "missing-" EVIL},
      {"stats", "twin:" EVIL},
      {EVIL},
      {"db", EVIL},
      {"stats", "--" EVIL},
      {"stats", "a", "-d", EVIL},
      {"help", EVIL},
      {"import", "a", EVIL},
      {"run", TWIN, "--op", EVIL},
      {"run", TWIN, "-n", EVIL},
      {"run", TWIN, "--variant", EVIL, "--device", "host"},
      {"run", EVIL ".mtx", "-n", "8", "--device", "host"},
      {"run", EVIL ".mtx", "-n", "8", "--device", "host", "--db", EVIL ".mtx"},
      {"tune", EVIL ".mtx", "-n", "8", "--budget", "1ms", "--device", "host"},
      {"explain", EVIL ".mtx", "-n", "8", "--device", "host"},
      {"compare", EVIL ".mtx", "-n", "8", "--device", "host"},
      {"bench", EVIL},
      {"bench", "core", EVIL ".mtx", "-n", "8", "--device", "host", "--samples", "3"},
      {"bench", "core", "missing-" EVIL ".mtx", "-n", "8", "--device", "host"},
      {"convert", EVIL ".mtx", "-o", EVIL ".out"},
      {"convert", EVIL ".mtx", "-o", "no/" EVIL},
      {"export", "-o", EVIL ".out", "--db", EVIL},
      {"db", "check", "--db", EVIL ".mtx"},
      {"db", "list"},
      {"info", "--db", EVIL ".db"},
  };
  char before[4096];
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(folder.path), 0);
  write_whole(EVIL ".mtx", matrix, strlen(matrix));
  for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
    const char *argv[MOST + 2] = {WLM_COMMAND};
    command c;
    for (int k = 0; k < 9 && arguments[i][k]; k++) argv[k + 1] = arguments[i][k];
    command_start(&c, &folder, argv);
    command_wait(&c);
    assert_printable(argv[1], c.out);
    assert_printable(argv[1], c.err);
    if (c.code && count_lines(c.err, "") - count_lines(c.err, "warning: ") > 2) fail_msg("%s: %s", argv[1], c.err);
  }
  assert_int_equal(chdir(before), 0);
}

GROUP(home_begin, folder_end)
