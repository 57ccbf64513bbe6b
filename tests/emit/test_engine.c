/* The template engine: errors in templates and in family.lua name file and line, and #line directives give every
 * emitted line its template's line number. */
#include <ctype.h>

#include "generator/files.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/host/compiler.h"
#include "support/emit_fixture.h"
#include "support/test.h"

static const char good_family[] =
    "return {\n"
    "  target = \"host\", summary = \"test\", parameters = { { \"x\", { 1, 3 } } },\n"
    "  passes = function(p) return { { kernel = \"k\", units = \"rows\", units_per_block = p.x } } end,\n"
    "}\n";
static const char good_kernel[] = "WLM_KERNEL(k) {\n  (void)args; (void)unit_blocks;\n}\n";

/* Emits mine/x=1 of a folder with this family. Returns the source, or NULL after an error that contains `expected`;
 * free(). */
static char *emit(const char *family, const char *kernel, const wlmi_limits *limits, const char *expected) {
  test_folder folder;
  wlmi_generator *generator = NULL;
  wlmi_program program = {0};
  const wlmi_spec spec = emit_spec(64);
  folder_make(&folder);
  emit_write(&folder, "mine", "family.lua", family);
  emit_write(&folder, "mine", limits->target == WLMI_TARGET_CUDA ? "kernel.cu.in" : "kernel.c.in", kernel);
  wlm_status status = wlmi_generator_create(folder.path, &generator);
  if (status == WLM_OK) status = wlmi_generator_emit(generator, "mine/x=1", &spec, limits, &program);
  folder_remove(&folder);
  wlmi_generator_destroy(generator);
  if (expected) {
    assert_fails(WLM_ERR_TEMPLATE, status, expected);
  } else if (status != WLM_OK) {
    fail_msg("%s", wlm_error_detail());
  }
  return program.source;
}

TEST(test_template_errors_name_the_line) {
  static const struct {
    const char *kernel, *message;
  } cases[] = {
      {"one\n@{missing}\n", "mine/kernel.c.in:2: 'missing' is not defined"},
      {"% if x == 1 then\nint a;\n% end\n@{x + missing}\n", "mine/kernel.c.in:4: 'missing' is not defined"},
      {"one\n% for i = 1, missing do\n% end\n", "mine/kernel.c.in:2: 'missing' is not defined"},
      {"one\n\nint a = @{x;\n", "mine/kernel.c.in:3: '@{' without '}'"},
      {"one\n% local y = x .. nil\n", "mine/kernel.c.in:2: attempt to concatenate"},
      {"one\n@{x.y.z}\n", "mine/kernel.c.in:2: attempt to index"},
      {"one\n% if x == 1 then\ntwo\n", "mine/kernel.c.in:3: 'end' expected"},
      {"one\n% if x = 1 then\n% end\n", "mine/kernel.c.in:2: 'then' expected"},
      {"one\n@{x / 2}\n", "mine/kernel.c.in:2: '@{}' gives float"},
      {"one\n@{nil}\n", "mine/kernel.c.in:2: '@{}' gives nil"},
      {"% y = 1\n", "mine/kernel.c.in:1: assignment to global 'y'"},
      {"one\n% os.exit(1)\n", "mine/kernel.c.in:2: 'os' is not defined"},
      {"one\n% error({})\n", "mine/kernel.c.in:2: 'error' is not defined"},
      {"% include \"mine/absent.h\"\n", "absent.h"},
      {"one\n% include \"windows/group.h\"\n",
       "mine: \"windows/group.h\": a family reads files of its own folder and of prelude/"},
      {"% include \"mine/../prelude/piece.h\"\n", "mine: \"mine/../prelude/piece.h\": a family reads files of its own"},
      {"% include \"mine/.hidden\"\n", "mine: \"mine/.hidden\": a family reads files of its own folder"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_null(emit(good_family, cases[i].kernel, &emit_host, cases[i].message));
}

/* A folder without a valid family is an error and never gives an empty list. */
TEST(test_folders_without_a_family) {
  wlmi_generator *generator = NULL;
  test_folder folder;
  folder_make(&folder);
  assert_fails(WLM_ERR_TEMPLATE, wlmi_generator_create(folder.path, &generator), "holds no NAME/family.lua");
  emit_write(&folder, "my-family", "family.lua", good_family);
  assert_fails(WLM_ERR_TEMPLATE, wlmi_generator_create(folder.path, &generator),
               "my-family/family.lua: a family's folder is named by");
  folder_remove(&folder);
}

/* A family needs a pass to execute. It has prepared memory if and only if it has a prepare pass. */
TEST(test_passes_and_prepared_bytes) {
  static const struct {
    const char *passes, *prepared, *message;
  } cases[] = {
      {"{ kernel = \"k\", when = \"prepare\" }", "{ rows = 8 }", "mine/x=1: 'passes' has no pass to execute"},
      {"{ kernel = \"k\" }, { kernel = \"k\", when = \"prepare\" }", "{}",
       "mine/x=1: a pass with when = \"prepare\" and"},
      {"{ kernel = \"k\" }", "{ blocks_n = 1 }", "mine/x=1: a pass with when = \"prepare\" and"},
      {"{ kernel = \"k\", when = \"later\" }", "{}", "'when' has the value 'later'"},
      {"{ kernel = \"k\" }, { kernel = \"k\", when = \"prepare\" }", "{ one = 1 }", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char family[512];
    snprintf(family, sizeof family,
             "return { target = \"host\", summary = \"test\", parameters = { { \"x\", { 1 } } },\n"
             "  passes = function() return { %s } end, prepared = function() return %s end }\n",
             cases[i].passes, cases[i].prepared);
    WLM_FREED char *source = emit(family, good_kernel, &emit_host, cases[i].message);
    assert_int_equal(source == NULL, cases[i].message != NULL);
  }
}

TEST(test_family_errors_name_the_file) {
  static const struct {
    const char *family, *message;
  } cases[] = {
      {"return {\n  target = \n}\n", "mine/family.lua:3: unexpected symbol"},
      {"local a = nil\nlocal b = a.c\n", "mine/family.lua:2: attempt to index"},
      {"return 1\n", "mine/family.lua: must return a table"},
      {"return { target = \"host\", summary = \"s\", parameters = {} }\n", "mine/family.lua: 'passes' is missing"},
      {"return { target = \"fpga\", summary = \"s\", parameters = {}, passes = ipairs }\n",
       "mine/family.lua: target must be"},
      {"return { target = \"host\", operation = \"spmv\", summary = \"s\", parameters = {}, passes = ipairs }\n",
       "mine/family.lua: operation must be"},
      {"return { target = \"host\", split = \"nope\", summary = \"s\", parameters = {}, passes = ipairs }\n",
       "mine/family.lua: split must be \"none\", \"carry\" or \"atomic\", not \"nope\""},
      {"return { target = \"host\", walks = 1, summary = \"s\", parameters = {}, passes = ipairs }\n",
       "mine/family.lua: walks must be \"op(a)\" or \"a\", not 1"},
      {"return { target = \"host\", samples = \"never\", summary = \"s\", parameters = {}, passes = ipairs }\n",
       "mine/family.lua: samples must be true, false or \"only\", not \"never\""},
      {"return { target = \"host\", positions = \"yes\", summary = \"s\", parameters = {}, passes = ipairs }\n",
       "mine/family.lua: positions must be a boolean, not \"yes\""},
      {"return { target = \"host\", summary = \"s\", parameters = {}, passes = {} }\n",
       "mine/family.lua: passes must be a function, not a table"},
      {"return { target = \"host\", position = true, summary = \"s\", parameters = {}, passes = ipairs }\n",
       "mine/family.lua: 'position' is no field of a family"},
      {"return shared \"../other/a.lua\"\n",
       "mine: \"prelude/../other/a.lua\": a family reads files of its own folder"},
      {"return { target = \"host\", version = 1.5, summary = \"s\", parameters = {}, passes = ipairs }\n",
       "mine/family.lua: version must be a whole number, not 1.5"},
      {"return { target = \"host\", summary = \"s\", parameters = { { \"x\", { 1 } } },\n"
       "  passes = function(p, problem)\n    return nothing.here\n  end }\n",
       "mine/family.lua:3: attempt to index"},
      {"return { target = \"host\", summary = \"s\", parameters = { { \"x\", { 1 } } },\n"
       "  valid = function(p, problem)\n    return p.x + nil\n  end, passes = function() return {} end }\n",
       "mine/family.lua:3: attempt to perform arithmetic"},
      {"return { target = \"host\", summary = \"s\", parameters = { { \"x\", { 1 } } },\n"
       "  passes = function() return { { kernel = \"k\", units = \"furlongs\" } } end }\n",
       "'units' has the value 'furlongs', which is not known"},
      {"return { target = \"host\", summary = \"s\", parameters = { { \"x\", { 1 } } },\n"
       "  passes = function() return { { kernel = \"k\", units_per_block = 0 } } end }\n",
       "'units_per_block' must be at least 1"},
      {"return { target = \"host\", summary = \"s\", parameters = { { \"x\", { 1 } } },\n"
       "  passes = function() return { { units = \"rows\" } } end }\n",
       "'kernel' must be a string"},
      {"return { target = \"host\", summary = \"s\", parameters = { { \"x\", { 1 } } },\n"
       "  passes = function() return {} end }\n",
       "'passes' must have 1 to 6 entries"},
      {"return { target = \"host\", summary = \"s\", parameters = { { \"x\", { 1 } } },\n"
       "  passes = function() return { { kernel = \"k\", unit = \"rows\", thread = 32 } } end }\n",
       "mine/family.lua: 'thread' is no field of a pass"},
      {"return { target = \"host\", summary = \"s\", parameters = { { \"x\", { 1 } } },\n"
       "  passes = function() return { { kernel = \"k\", wave = 4 } } end }\n",
       "mine/family.lua: 'wave' is no field of a pass"},
      {"return { target = \"host\", summary = \"s\", parameters = { { \"x\", { 1 } } },\n"
       "  passes = function() return { { kernel = \"k\", dependent = 1 } } end }\n",
       "mine/family.lua: dependent must be a boolean, not 1"},
      {"return { target = \"host\", summary = \"s\", parameters = { { \"x\", { 1 } } },\n"
       "  passes = function() return { { kernel = \"k\", resident = \"8\" } } end }\n",
       "mine/family.lua: resident must be a number, not \"8\""},
      {"return { target = \"host\", summary = \"s\", parameters = { { \"x\", { 1 } } },\n"
       "  passes = function() return { \"k\" } end }\n",
       "mine/family.lua: a pass must be a table, not \"k\""},
      {"return { target = \"host\", summary = \"s\", parameters = { { \"x\", { 1 }, \"wide\" } }, passes = ipairs }\n",
       "mine/family.lua: parameter x: \"wide\" is unknown behind its values; \"widest\" and \"halved\" are known"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_null(emit(cases[i].family, good_kernel, &emit_host, cases[i].message));
}

/* ---- versions ---------------------------------------------------------------------------------------- */

static void read_version(const char *path, const char *family, char version[WLMI_HASH_HEX]) {
  OWN(wlmi_generator, generator, wlmi_generator_create(path, &generator));
  strcpy(version, wlmi_family_version(wlmi_generator_families(generator), family));
}

/* The number of a family of the library; the content of a family of a folder, whatever its number is. */
TEST(test_versions) {
  static const struct {
    const char *family, *file, *text;
    int changes;
  } steps[] = {{"other", "family.lua", good_family, 0},
               {"mine", "family.lua", good_family, 0},
               {"mine", "kernel.c.in", good_kernel, 0},
               {"mine", "kernel.c.in", "WLM_KERNEL(k) {}\n", 1},
               {"mine", "piece.h", "", 1},
               {"mine", "piece.h", " ", 1},
               {"other", "kernel.c.in", "WLM_KERNEL(k)", 0},
               {"prelude", "piece.h", "", 1}};
  char shipped[WLMI_HASH_HEX], before[WLMI_HASH_HEX], now[WLMI_HASH_HEX];
  test_folder folder;
  read_version(NULL, "row_crc/cf=4,rows=8", shipped);
  assert_string_equal(shipped, "00000000000000000000000000000001");
  read_version(NULL, "row_crcs", now);
  assert_string_equal(now, "");
  folder_make(&folder);
  emit_write(&folder, "mine", "family.lua", good_family);
  emit_write(&folder, "mine", "kernel.c.in", good_kernel);
  emit_write(&folder, "other", "kernel.c.in", good_kernel);
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    emit_write(&folder, steps[i].family, steps[i].file, steps[i].text);
    read_version(folder.path, "mine/x=1", now);
    assert_int_equal(strlen(now), 32);
    if (i) assert_int_equal(strcmp(now, before) != 0, steps[i].changes);
    strcpy(before, now);
  }
  folder_remove(&folder);
}

/* ---- docs/adding-a-family.md -------------------------------------------------------------------------- */

/* Fails if the page, from `heading` on, does not have each of the words. */
static void check_words(const char *heading, char *words) {
  size_t size;
  FREED char *raw = (char *)read_whole(WLM_SOURCE_DIR "/docs/adding-a-family.md", &size);
  FREED char *page = strndup(raw, size);
  const char *part = strstr(page, heading);
  int count = 0;
  if (!part) fail_msg("docs/adding-a-family.md has no %s", heading);
  for (char *word = strtok(words, " \n"); word; word = strtok(NULL, " \n"), count++) {
    const char *at = part;
    const size_t length = strlen(word);
    while ((at = strstr(at, word)) && (strchr("_.", at[-1]) || isalnum((unsigned char)at[-1]) || at[length] == '_' ||
                                       isalnum((unsigned char)at[length])))
      at += length;
    if (!at) fail_msg("docs/adding-a-family.md does not describe '%s' from %s on", word, heading);
  }
  assert_true(count > 3);
}

/* The names that a family sees, which this one puts into the name of a field that is refused. */
TEST(test_the_page_has_every_name) {
  static const struct {
    const char *table, *heading;
  } seen[] = {{"problem", "### What `valid` and `passes` see"},
              {"limits", "`limits` has"},
              {"problem.walk", "### `problem.walk`"}};
  wlm_csr csr = WLM_CSR_INIT;
  wlm_problem message =
      PROBLEM(.operation = WLM_MESSAGE, .reduce = WLM_CUSTOM, .custom = "max=tanh(b)", .want_argmax = 1, .n = 64);
  GET(wlmi_spec, spec, wlmi_spec_make(&message, &csr, &spec));
  for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
    char family[512], words[1024];
    test_folder folder;
    const wlmi_candidate_list *names;
    snprintf(family, sizeof family,
             "return { target = \"host\", summary = \"test\", operands = true, positions = true, parameters = { { "
             "\"x\", { 1 } } },\n"
             "  passes = function(p, problem, limits)\n    local words = {}\n"
             "    for name in pairs(%s) do words[#words + 1] = name end\n"
             "    return { { kernel = \"k\", [\"|\" .. table.concat(words, \" \")] = 1 } }\n  end }\n",
             seen[i].table);
    folder_make(&folder);
    emit_write(&folder, "mine", "family.lua", family);
    emit_write(&folder, "mine", "kernel.c.in", good_kernel);
    GET(wlmi_generator *, generator, wlmi_generator_create(folder.path, &generator));
    assert_status(WLM_ERR_TEMPLATE, wlmi_generator_describe(generator, &spec, &emit_host, &names));
    const char *list = strchr(wlm_error_detail(), '|');
    if (!list) fail_msg("%s", wlm_error_detail());
    snprintf(words, sizeof words, "%.*s", (int)strcspn(list + 1, "'"), list + 1);
    check_words(seen[i].heading, words);
    wlmi_generator_destroy(generator);
    folder_remove(&folder);
  }
}

/* ---- #line ------------------------------------------------------------------------------------------- */

static const char *line_of(const char *text, int64_t number, size_t *size) {
  for (; text && number > 1; number--) {
    text = strchr(text, '\n');
    text = text ? text + 1 : NULL;
  }
  *size = text ? strcspn(text, "\n") : 0;
  return text;
}

/* An emitted line equals its template's line up to the first inserted value. */
static void check_line(const char *variant, const char *name, int64_t number, const char *emitted, size_t size) {
  size_t file_size, line_size, same;
  const char *file = wlmi_archive_find(name, &file_size);
  if (!file) return; /* the operator block has no template file */
  const char *line = line_of(file, number, &line_size);
  if (!line) fail_msg("%s: %s has no line %lld", variant, name, (long long)number);
  const char *value = strstr(line, "@{");
  same = value && value < line + line_size ? (size_t)(value - line) : line_size;
  if (size < same || memcmp(line, emitted, same) || (same == line_size && size != line_size))
    fail_msg("%s: %s:%lld is\n%.*s\nemitted as\n%.*s", variant, name, (long long)number, (int)line_size, line,
             (int)size, emitted);
}

static void check_lines(const wlmi_program *program) {
  char name[128] = "";
  long long number = 0;
  for (const char *at = program->source; *at;) {
    size_t size = strcspn(at, "\n");
    if (!strncmp(at, "#line ", 6)) {
      if (sscanf(at, "#line %lld \"%127[^\"]\"", &number, name) != 2) fail_msg("%.*s", (int)size, at);
    } else {
      check_line(program->variant, name, number++, at, size);
    }
    at += size + (at[size] == '\n');
  }
}

TEST(test_emitted_lines_have_template_lines) {
  const wlmi_limits *const limits[] = {&emit_cuda, &emit_host};
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  int64_t checked = 0;
  for (int i = 0; i < 4; i++) {
    wlmi_spec spec = emit_spec(128);
    spec.problem.sampling.sample = i / 2 ? WLM_SAMPLE_FASTRAND : WLM_SAMPLE_NONE;
    spec.problem.sampling.width = 32;
    OWN(wlmi_candidates, names, wlmi_generator_describe(generator, &spec, limits[i % 2], &names));
    for (int64_t k = 0; k < names->count; k++) {
      HELD(wlmi_program) program;
      assert_status(WLM_OK,
                    wlmi_generator_emit(generator, names->candidates[k].variant, &spec, limits[i % 2], &program));
      check_lines(&program);
      checked++;
    }
  }
  assert_true(checked > 50);
}

/* The mistake comes after lines that are emitted three times and lines that are not emitted. */
static const char planted[] =
    "%s {\n"
    "%% for i = 1, 3 do\n"
    "  int a@{i} = @{i};\n"
    "  (void)a@{i};\n"
    "%% end\n"
    "%% if x == 3 then\n"
    "  int only_for_three;\n"
    "%% end\n"
    "  int wrong = planted_mistake;\n"
    "}\n";

TEST(test_compiler_errors_name_the_template) {
  char kernel[512];
  void *image;
  size_t size;
  snprintf(kernel, sizeof kernel, planted, "WLM_KERNEL(k)");
  WLM_FREED char *source = emit(good_family, kernel, &emit_host, NULL);
  assert_fails(WLM_ERR_COMPILE, wlmi_host_compile(source, &image, &size), "mine/kernel.c.in:9:");
  assert_contains(wlm_error_detail(), "planted_mistake");
}

TEST(test_nvrtc_errors_name_the_template) {
  test_needs_nvrtc();
  static const char family[] =
      "return {\n"
      "  target = \"cuda\", summary = \"test\", parameters = { { \"x\", { 1, 3 } } },\n"
      "  passes = function(p) return { { kernel = \"k\", units = \"rows\", threads = 32 } } end,\n"
      "}\n";
  char kernel[512];
  void *image;
  size_t size;
  snprintf(kernel, sizeof kernel, planted, "WLM_KERNEL(k, 32)");
  WLM_FREED char *source = emit(family, kernel, &emit_cuda, NULL);
  assert_fails(WLM_ERR_COMPILE, wlmi_nvrtc_compile(source, "emitted", 90, 0, &image, &size, NULL),
               "mine/kernel.cu.in(9)");
  assert_contains(wlm_error_detail(), "planted_mistake");
}
