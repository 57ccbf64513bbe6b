/* explain shows a file of warploom.torch.calibrate: the sentences, the curve and the tables. sampling.json is such a
 * file, in which times are proportional to edges. */
#include "support/command.h"
#include "support/test.h"

static const char whole_file[] = WLM_SOURCE_DIR "/tests/cli/sampling.json";

static const char expected[] =
    "accuracy: loses 1.58 points of the 4.00 allowed (at most 2.85 with 95 % confidence)\n"
    "inference: 0.769 ms, 1.3 times as fast as with all edges (1 ms)\n"
    "\n"
    "points lost of accuracy, over the time of one inference; numbers: S of the layers\n"
    "  12.94 |                        +16\n"
    "        |\n"
    "        |                        +16\n"
    "        |\n"
    "        |\n"
    "        |\n"
    "        |                                  +32\n"
    "        |                                  +32\n"
    "        |\n"
    "        |                                            +32/64\n"
    "   4.00 | - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -\n"
    "        |\n"
    "        |                                            +64/32\n"
    "        |                                                     *64\n"
    "        |\n"
    "   0.00 |                                                                  all+\n"
    "        +----------------------------------------------------------------------\n"
    "          0 ms                                                             1 ms\n"
    "* chosen   + measured   ^ loses more   - budget\n"
    "\n"
    "layer  sample     variance: expected  measured  most in rows\n"
    "a      bucket 64             0.00348   0.00349  964, 1444, 324, 817, 281\n"
    "b      bucket 64              0.0166    0.0164  1000, 1155, 1444, 608, 1480\n"
    "\n"
    "  us   loss  bound  setting\n"
    " 342  12.94      -  bucket 16\n"
    " 342  11.38      -  fastrand 16\n"
    " 342  11.38      -  fastrand_coprime 16\n"
    " 484   7.37      -  bucket 32\n"
    " 484   7.27      -  fastrand 32\n"
    " 484   7.27      -  fastrand_coprime 32\n"
    " 627   5.37      -  bucket 32; bucket 64\n"
    " 627   2.34   5.24  bucket 64; bucket 32\n"
    " 769   1.58   2.85  bucket 64  <- chosen\n"
    "1000   0.00   0.00  all edges\n";

/* Writes the file with `to` in place of each `from`. */
static const char *changed(const char *from, const char *to) {
  const char *path = in_folder("changed.json");
  FREED char *text = text_of(whole_file);
  char *at = text;
  FILE *out = fopen(path, "wb");
  assert_non_null(strstr(text, from));
  for (char *next; (next = strstr(at, from)); at = next + strlen(from))
    fprintf(out, "%.*s%s", (int)(next - at), at, to);
  fprintf(out, "%s", at);
  fclose(out);
  return path;
}

TEST(the_curve_and_the_tables) {
  command c = RUN(0, "explain", whole_file);
  assert_string_equal(c.out, expected);
  assert_string_equal(c.err, "");
}

TEST(json) {
  command c = RUN(0, "explain", whole_file, "--json");
  assert_true(json_is_valid(c.out));
  assert_json(c.out, {"$.metric", "accuracy"}, {"$.exact_us", "1000"}, {"$.layers[1].sample", "bucket 64"},
              {"$.layers[0].worst", "964, 1444, 324, 817, 281"}, {"$.settings[7].setting", "bucket 64; bucket 32"},
              {"$.settings[8].chosen", "1"}, {"$.settings[9].chosen", "0"});
  assert_null(json_at(c.out, "$.settings[0].bound_points"));
}

/* Losses far above the budget, and marks on the budget's line. */
TEST(a_smaller_budget) {
  command c = RUN(0, "explain", changed("\"budget\": 0.04", "\"budget\": 0.0225"));
  assert_contains(c.out, "   9.00 |                        ^16\n",
                  "   2.25 | - - - - - - - - - - - - - - - - - - - - - -+64/32 - - - - - - - - - -\n");
}

/* A model that is one layer has no name; a name may hold anything. */
TEST(names_of_layers) {
  command c = RUN(0, "explain", changed("\"a\": ", "\"\": "));
  assert_contains(c.out, "\nthe model  bucket 64             0.00348   0.00349  964, 1444, ");
  c = RUN(0, "explain", changed("\"a\": ", "\"a\\u001b[2J\\n\": "));
  assert_contains(c.out, "\na\\x1b[2J ...  bucket 64 ");
}

TEST(several_files) {
  const char *other = changed("bucket", "luck");
  command c = RUN(1, "explain", whole_file, other);
  assert_contains(c.out, "input        ", "769   1.58   2.85  bucket 64  <- chosen\n");
  assert_contains(c.err, "1 of 2 inputs cannot be read and were left out: ");
  c = RUN(2, "explain", whole_file, "-n", "8");
  assert_contains(c.err, "warploom explain: takes no option '-n'");
}

TEST(damaged_files) {
  static const struct {
    const char *from, *to, *said;
  } cases[] = {
      {"{", "{ {", "(line 1: string or '}' expected near '{')"},
      {"warploom sampling 1", "warploom sampling 2",
       "(it is 'warploom sampling 2', and this version reads 'warploom sampling 1')"},
      {"warploom sampling 1", "tuned", "(format must be 'warploom sampling 1')"},
      {"\"format\"", "\"what\"", "(format must be 'warploom sampling 1')"},
      {"\"budget\": 0.04", "\"budget\": 4", "(budget must be above 0 and at most 1)"},
      {"\"budget\"", "\"limit\"", "(budget is missing)"},
      {"\"metric\": \"accuracy\"", "\"metric\": 3", "(metric must be a text)"},
      {"\"exact_us\": 1000.0", "\"exact_us\": 0", "(exact_us must be a number above 0)"},
      {"\"exact_us\": 1000.0", "\"exact_us\": NaN", "invalid token near 'NaN'"},
      {"\"layers\": {", "\"layers\": {}, \"others\": {", "(layers must be an object that is not empty)"},
      {"\"a\": {", "\"a\": 3, \"c\": {", "(layers['a'] must be an object)"},
      {"\"expected\": 0.", "\"expected\": false, \"other\": 0.", "(layers['a'].expected must be a number)"},
      {"\"measured\"", "\"found\"", "(layers['a'].measured is missing)"},
      {"\"worst\": [", "\"worst\": [3,", "(layers['a'].worst must be an array of [row, edges, variance])"},
      {"\"sample\": {", "\"samples\": {", "(layers['a'].sample is missing)"},
      {"\"width\": 64", "\"width\": 6.5", "(layers['a'].sample.width must be an integer from 1 to 1048576)"},
      {"\"strategy\": \"bucket\"", "\"strategy\": \"luck\"",
       "(layers['a'].sample.strategy must be bucket, fastrand or fastrand_coprime)"},
      {"\"tried\": [", "\"tried\": 3, \"others\": [", "(tried must be an array)"},
      {"\"tried\": [", "\"tried\": [3, ", "(tried[0] must be an object)"},
      {"\"passes\": 2", "\"passes\": 2}, {\"us\": 1", "(tried[1].loss is missing)"},
      {"\"samples\": {", "\"found\": {", "(tried[0].samples.a is missing)"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    command c;
    command_run(&c, &folder, "explain", changed(cases[i].from, cases[i].to));
    if (c.code != 1 || !strstr(c.err, cases[i].said) || count_lines(c.err, "") != 1 || *c.out)
      fail_msg("%s: exit code %d, %s%s", cases[i].to, c.code, c.err, c.out);
    assert_contains(c.err, "changed.json: is no sampling that warploom.torch.calibrate saved (",
                    "); run it again, or name a matrix\n");
  }
}

TEST(other_files) {
  const char *list = in_folder("list.json"), *empty = in_folder("empty.json"), *edges = in_folder("edges.json");
  write_whole(list, " [1]\n", 5);
  write_whole(empty, "", 0);
  write_whole(edges, "0 1\n1 0\n", 8);
  command c = RUN(1, "explain", list);
  assert_contains(c.err, "list.json: is no sampling that warploom.torch.calibrate saved (format must be");
  c = RUN(1, "explain", empty);
  assert_contains(c.err, "empty.json:1: the file is empty");
  c = RUN(0, "explain", edges, "-n", "8", "--device", "host");
  assert_contains(c.out, "2 x 2, 2 non-zeros");
}

EACH(home_begin, folder_end)
