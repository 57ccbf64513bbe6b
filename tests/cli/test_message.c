/* --message on the command line: messages are run, checked, tuned, explained, exported, recorded and compared, and
 * other spellings of a message find its measurements. */
#include "support/command.h"
#include "support/test.h"

#define INPUT "uniform:rows=300,d=7"

TEST(runs_and_checks) {
  static const char *const lines[][5] = {
      {"relu(b+e)"},
      {"relu(b+e)", "--op", "mean"},
      {"b>0?b:e", "--op", "prod"}, /* a ':' that declares nothing */
      {"b==e", "--op", "min", "--transpose"},
      {"max=x*b;edge_sum=x*b", "--arg", "i64", "--type", "bf16"},
      {"mean=b;edge=x*b", "--transpose", "--sample", "bucket:8"},
      {"x:row:heads; sum=tanh(x+b)*a", "--heads", "4", "--ldb", "40"},
      {"w:row:wins;sum=w*b", "--arg", "i64"},
      {"sum=b;max=b+e", "--bias", "--epilogue", "relu", "--transpose"},
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    const char *const *line = lines[i];
    const char *argv[16] = {WLM_COMMAND, "run", INPUT, "-n", "32", "--device", "host", "--check", "--message"};
    for (int k = 0; k < 5; k++) argv[9 + k] = line[k];
    command c;
    command_start(&c, &folder, argv);
    command_wait(&c);
    if (c.code || !strstr(c.out, "verified")) fail_msg("%s: exit code %d\n%s\n%s", line[0], c.code, c.out, c.err);
  }
}

static void expect_tuned(const char *database, const char *text, const char *op, int is_tuned) {
  command c = RUN(0, "explain", INPUT, "-n", "24", "--device", "host", "--db", database, "--message", text, "--op", op);
  const int found = strstr(c.out, "this very matrix was tuned") && !strstr(c.out, ", for the message");
  if (found != is_tuned) fail_msg("%s:\n%s", text, c.out);
}

/* What compare times is the kernel that was tuned for another spelling. */
static void expect_compared(const char *database, const char *text) {
  command c = RUN(0, "compare", INPUT, "-n", "24", "--device", "host", "--samples", "3", "--json", "--db", database,
                  "--message", text);
  assert_json_at(c.out, "$.comparisons[0].step", "fingerprint");
}

/* Export and import carry the measurements, which all spellings find. */
TEST(spellings_share_measurements) {
  const char *database = in_folder("tuned.db"), *copy = in_folder("copy.db"), *lines = in_folder("lines.jsonl");
  const char *again = in_folder("again.jsonl");
  RUN(0, "tune", INPUT, "-n", "24", "--device", "host", "--db", database, "--message", "relu(b+e)/2");
  RUN(0, "export", "--db", database, "-o", lines);
  RUN(0, "import", lines, "--db", copy);
  RUN(0, "export", "--db", copy, "-o", again);
  FREED char *first = text_of(lines), *second = text_of(again);
  assert_contains(first, "op=custom{sum=relu(b+e)/2},");
  assert_string_equal(first, second);
  const char *const databases[] = {database, copy};
  for (int i = 0; i < 2; i++) {
    static const char *const same[] = {"relu( b + e ) / 2", "sum=relu(b+e)/2", "e:edge; sum = (relu((b)+(e)))/2.0;",
                                       "b:column:n;sum=relu(b+e)/2.f"};
    for (size_t k = 0; k < sizeof same / sizeof *same; k++) expect_tuned(databases[i], same[k], "sum", 1);
    expect_compared(databases[i], "sum = relu(b + e) / 2.0");
    expect_tuned(databases[i], "relu(e+b)/2", "sum", 0);
    expect_tuned(databases[i], "relu(b+e)/2", "max", 0);
  }
}

TEST(recorded_messages_are_tuned) {
  static const char input[] = "synth:rows=400,d=5,cv=1.2"; /* tuned on another matrix like it */
  const char *database = in_folder("recorded.db");
  RUN(0, "run", input, "-n", "8", "--device", "host", "--db", database, "--record", "--message",
      "x:row:1;sum=tanh(x+b)*a");
  command c = RUN(0, "db", "list", "--db", database, "--json");
  FREED char *problem = json_at(c.out, "$.recorded[0].problem");
  assert_non_null(problem);
  assert_contains(problem, "op=custom{x:row:1;sum=tanh(x+b)*a},");
  c = RUN(0, "tune", "--recorded", "--device", "host", "--db", database, "--json");
  assert_json(c.out, {"$.tuned", "1"}, {"$.left", "0"});
  c = RUN(0, "explain", input, "-n", "8", "--device", "host", "--db", database, "--json", "--message",
          "x:row:1;sum=tanh(x+b)*a");
  assert_json_at(c.out, "$[0].step", "similar");
}

/* Eight operands and results of n values for each edge: on large matrices of the design they do not fit. */
TEST(the_design_leaves_out_what_does_not_fit) {
  static const char wide[] = "p:edge;q:edge;r:edge;sum=p+q+r+e+b;edge=p;edge=q;edge=r;edge=e";
  double cells[2];
  for (int i = 0; i < 2; i++) {
    command c =
        RUN(0, "tune", "--budget", "1ms", "-n", "256", "--device", "host", "--json", "--message", i ? wide : "b");
    cells[i] = json_number_at(c.out, "$.cells");
  }
  assert_true(cells[1] > 0 && cells[1] < cells[0]);
}

TEST(pins_apply_to_messages) {
  const char *database = in_folder("pins.db");
  RUN(0, "db", "pin", INPUT, "host_row/rows=16,tile=16", "-n", "8", "--device", "host", "--db", database, "--message",
      "relu(b+e)");
  command c = RUN(0, "explain", INPUT, "-n", "8", "--device", "host", "--db", database, "--json", "--message",
                  "sum=relu( b+e )");
  assert_json(c.out, {"$[0].step", "pin"}, {"$[0].variant", "host_row/rows=16,tile=16"});
}

/* No baseline computes messages, so the verdict names the product that was timed, and a report does not count it. */
TEST(compares_with_a_product) {
  command c = RUN(0, "compare", INPUT, "-n", "16", "--device", "host", "--samples", "3", "--message", "relu(b+e)");
  assert_int_equal(count_lines(c.out, " the product of a plain OpenMP loop"), 1);
  assert_int_equal(count_lines(c.out, "the loop computes no messages; its time is that of the sum of a * b"), 1);
  c = RUN(0, "compare", INPUT, "-n", "16", "--device", "host", "--samples", "3", "--json", "--message", "relu(b+e)");
  assert_true(json_number_at(c.out, "$.comparisons[0].speed_up_over_product") > 0);
  char *none = json_at(c.out, "$.comparisons[0].speed_up");
  assert_null(none);
}

TEST(shows_the_kernel) {
  command c = RUN(0, "show", "row_vec", "-n", "64", "--target", "cuda", "--message", "relu(b+e)");
  assert_contains(c.out, "wlm_relu(v_b+v_e)");
  c = RUN(1, "show", "row_crc", "-n", "64", "--message", "relu(b+e)");
  assert_contains(c.err, "'row_crc' is no candidate");
}

GROUP(home_begin, folder_end)
