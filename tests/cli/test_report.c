/* warploom report through the real binary, on hand-made measurements. Most tests replace gnuplot by a script; the last
 * ones use the real gnuplot and a real browser, if they are installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/memory.h"
#include "db/store.h"
#include "support/command.h"
#include "support/require.h"
#include "tuner/train.h"

#define EVIL   "</script><script>alert(1)</script>&'\""
#define ROW128 "host_row/rows=128,tile=32"
#define ROW16  "host_row/rows=16,tile=32"
#define NNZ    "host_nnz/nonzeros=8192,tile=32"

static const char problem_key[] = "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none";

static wlmi_measurement_record measured(const char *matrix, int64_t id, const char *variant, double us) {
  return (wlmi_measurement_record){.device = {"A <b>processor</b>", "host", "x86_64", 2, 1 << 30},
                                   .matrix_name = (char *)matrix,
                                   .stats = {.size = sizeof(wlm_stats),
                                             .rows = 1000,
                                             .cols = 1000,
                                             .nnz = 7000,
                                             .longest = 9,
                                             .rows_le_16 = 1000,
                                             .cv = 0.2,
                                             .fingerprint = {(uint64_t)id, 5}},
                                   .variant = (char *)variant,
                                   .source_hash = "0123456789abcdef0123456789abcdef",
                                   .problem = (char *)problem_key,
                                   .n = 32,
                                   .compiler = "cc 12.2.0 <x>",
                                   .clock = "hot",
                                   .time_ps = (int64_t)(us * 1e6),
                                   .spread_ps = 100000,
                                   .samples = 9,
                                   .calls_per_sample = 2,
                                   .max_rel_err = 1e-7,
                                   .made_at = 1700000000 + id};
}

static void put(const char *database, const wlmi_measurement_record *records, int64_t count) {
  wlm_store *store;
  assert_status(WLM_OK, wlmi_store_open(database, WLM_STORE_WRITE, &store));
  assert_status(WLM_OK, wlmi_store_put(store, records, count));
  wlmi_store_close(store);
}

/* Two matrices of one bucket and one far away; the best variant takes 10 us on each. */
static void fill(const char *database) {
  static const struct {
    const char *matrix, *variant;
    double us;
  } times[] = {
      {EVIL, ROW128, 20}, {EVIL, ROW16, 10}, {EVIL, NNZ, 40},  {"b", ROW128, 30}, {"b", ROW16, 20},
      {"b", NNZ, 10},     {"c", ROW128, 10}, {"c", ROW16, 20}, {"c", NNZ, 40},    {"c", "own" EVIL "/x=1", 50}};
  enum { COUNT = sizeof times / sizeof *times };
  wlmi_measurement_record records[COUNT];
  for (int i = 0; i < COUNT; i++) {
    const int id = *times[i].matrix == 'c' ? 3 : *times[i].matrix == 'b' ? 2 : 1;
    records[i] = measured(times[i].matrix, id, times[i].variant, times[i].us);
    if (id == 3) records[i].stats.rows = records[i].stats.rows_le_16 = 1000000;
    if (id == 3) records[i].stats.nnz = 900000;
  }
  put(database, records, COUNT);
}

static char database[300], page_path[300];

static void set_paths(const char *name) {
  char file[64];
  snprintf(file, sizeof file, "%s.db", name);
  snprintf(database, sizeof database, "%s", folder_file(&folder, file));
  snprintf(page_path, sizeof page_path, "%s", folder_file(&folder, "page.html"));
}

static char *usual_path;

static int restore_path(void **state) {
  (void)state;
  return setenv("PATH", usual_path, 1);
}

/* Replaces gnuplot by this script until the end of the test; with NULL there is no gnuplot. */
static void replace_gnuplot(const char *program) {
  setenv("PATH", folder_file(&folder, "bin"), 1);
  mkdir(folder.file, 0777);
  folder_file(&folder, "bin/gnuplot");
  unlink(folder.file);
  if (!program) return;
  write_whole(folder.file, program, strlen(program));
  chmod(folder.file, 0777);
}

/* A gnuplot that keeps its script and writes empty pictures. */
static void stand_in(void) {
  char program[1024];
  snprintf(program, sizeof program,
           "#!/bin/sh\n/bin/cat > '%s/script'\n/bin/sed -n \"s/^set output '\\(.*\\)'$/\\1/p\" '%s/script' |\n"
           "while read -r file; do echo '<svg xmlns=\"http://www.w3.org/2000/svg\"/>' > \"$file\"; done\n",
           folder.path, folder.path);
  replace_gnuplot(program);
}

/* ---- checks of every page --------------------------------------------------------------------------------- */

/* Checks that elements are closed in order. `at` points behind "<"; returns what follows ">". */
static const char *one_tag(const char *at, char open[32][16], int *depth) {
  static const char *const single[] = {"!DOCTYPE", "meta", "img"};
  char name[16];
  const int closes = *at == '/';
  at += closes;
  const size_t size = strcspn(at, " >\n");
  assert_in_range(size, 1, sizeof name - 1);
  snprintf(name, sizeof name, "%.*s", (int)size, at);
  const char *end = strchr(at, '>');
  assert_non_null(end);
  for (size_t i = 0; i < sizeof single / sizeof *single; i++)
    if (!strcmp(name, single[i])) return end + 1;
  if (closes) {
    if (!*depth || strcmp(open[*depth - 1], name)) fail_msg("</%s> closes %s", name, *depth ? open[*depth - 1] : "");
    --*depth;
    return end + 1;
  }
  assert_in_range(*depth, 0, 31);
  strcpy(open[(*depth)++], name);
  if (strcmp(name, "script") && strcmp(name, "style")) return end + 1;
  end = strstr(end, !strcmp(name, "script") ? "</script" : "</style");
  assert_non_null(end);
  return end;
}

static void assert_sound(const char *page) {
  char open[32][16];
  int depth = 0;
  for (const char *at = page; (at = strchr(at, '<'));) at = one_tag(at + 1, open, &depth);
  assert_int_equal(depth, 0);
  static const char *const never[] = {"http:", "https:", "src=\"//", "@import", "url(", "@{", "<link", "<script src"};
  for (size_t i = 0; i < sizeof never / sizeof *never; i++)
    if (strstr(page, never[i])) fail_msg("the page holds %s", never[i]);
  for (const char *at = page; (at = strstr(at, " src=\""));) assert_memory_equal(at += 6, "data:image/", 11);
  for (const char *at = page; (at = strstr(at, " href=\""));) assert_true(*(at += 7) == '#');
  for (const char *at = page; (at = strstr(at, "<img ")); at++) {
    const char *alt = strstr(at, " alt=\"");
    assert_true(alt && alt < strchr(at, '>') && alt[6] != '"');
  }
}

/* The JSON data inside the page; free(). */
static char *data_of(const char *page) {
  const char *begin = strstr(page, "id=\"data\">");
  assert_non_null(begin);
  begin += strlen("id=\"data\">");
  return strndup(begin, (size_t)(strstr(begin, "</script>") - begin));
}

static char *make_page(void) {
  command c;
  command_expect(&c, &folder, 0, "report", "--db", database, "-o", page_path);
  assert_contains(c.out, page_path);
  command_release(&c);
  char *page = text_of(page_path);
  assert_sound(page);
  return page;
}

/* ---- tests -------------------------------------------------------------------------------------------------- */

static void page_shows_the_measurements(void **state) {
  (void)state;
  stand_in();
  set_paths("told");
  fill(database);
  char *page = make_page();
  assert_contains(page, "host/x86_64/A &lt;b&gt;processor&lt;/b&gt;/2");
  assert_contains(page, "10 (0 failed, 0 with a cold cache)");
  assert_contains(page, "matrices: 3, problems: 1, cases: 3");
  assert_contains(page, "2023-11-14 22:13 UTC");
  assert_contains(page, "<td>cc 12.2.0 &lt;x&gt;</td>");
#define NUMBERS(mean, median, worst)                                                               \
  "</td><td class=\"number\">3</td><td class=\"number\">" mean "</td><td class=\"number\">" median \
  "</td><td "                                                                                      \
  "class=\"number\">" worst "</td><td>"
  /* Over the best, variant 16 takes 1, 2 and 2 times and the rules 2, 3 and 1 times. "borrowed" uses the best
   * variant of the other matrix in the bucket, or the rules'. */
  assert_contains(page, "<td>one fixed: " ROW16 NUMBERS("1.587x", "2.000x", "2.00x") "b, N = 32");
  assert_contains(page, "<td>rules" NUMBERS("1.817x", "2.000x", "3.00x") "b, N = 32");
  assert_contains(page, "<td>borrowed" NUMBERS("2.000x", "2.000x", "4.00x") "&lt;/script&gt;");
  assert_null(strstr(page, "<td>GE-SpMM")); /* not measured in this database */

  assert_contains(page,
                  "over the built-in rules: 1.82x</strong> in the geometric mean of 3 cases, at most 3.00x (b, N");
  assert_contains(page, "<li>Over a plain OpenMP loop: not in this database.");

  char *json = data_of(page);
  assert_true(json_is_valid(json));
  assert_null(strchr(json, '<'));
  assert_json_at(json, "$.cases[0].matrix", EVIL);
  assert_json_at(json, "$.cases[0].candidates[0][1]", "10");
  assert_json_at(json, "$.cases[0].candidates[2][1]", "40");
  assert_json_at(json, "$.cases[0].candidates[0][2]", "0.1");
  assert_json_at(json, "$.cases[0].ways", "[[\"one fixed\",2],[\"rules\",1],[\"borrowed\",0]]");
  assert_json_at(json, "$.variants[3]", "own" EVIL "/x=1");
  free(json);

  char *script = text_of(folder_file(&folder, "script"));
  assert_contains(script, "\n7 0.2 1\n"); /* host_row wins on the first, host_nnz on the second */
  assert_contains(script, "\n7 0.2 0\n");
  assert_contains(script, "\n1.0000 33.3333\n2.0000 66.6667\n4.0000 100.0000\n"); /* the "borrowed" curve */
  assert_contains(script, "\n1000000 0.9\n");                                     /* the coverage plot */
  assert_null(strstr(script, "alert("));
  free(script);
  free(page);
}

/* Gains over baselines come from results files; lines of other devices are ignored. */
static void verdict_reads_results(void **state) {
  (void)state;
  static const char lines[] =
      "{\"suite\":\"core\",\"device\":\"A "
      "<b>processor</b>\",\"matrix\":\"x<y\",\"n\":64,\"us\":2.0,\"prepared_us\":2.0,"
      "\"cusparse\":null,\"host_rivals\":{\"openmp\":8.0,\"graphblas\":null}}\n"
      "{\"suite\":\"core\",\"device\":\"other\",\"matrix\":\"x\",\"n\":64,\"us\":1.0,\"host_rivals\":{\"openmp\":90.0}}"
      "\n"
      "{\"input\":\"z\",\"device\":\"A "
      "<b>processor</b>\",\"device_kind\":\"host\",\"comparisons\":[{\"n\":8,\"speed_up\":0.25}]}\n";
  command c;
  char results[320];
  stand_in();
  set_paths("verdict");
  fill(database);
  snprintf(results, sizeof results, "%s", folder_file(&folder, "results.jsonl"));
  write_whole(results, lines, strlen(lines));
  command_expect(&c, &folder, 0, "report", results, "--db", database, "-o", page_path);
  command_release(&c);
  char *page = text_of(page_path);
  assert_contains(page,
                  "Over a plain OpenMP loop: 1.00x</strong> in the geometric mean of 2 cases, at most 4.00x "
                  "(x&lt;y, N = 64). It lost in 1: 0.25x (z, N = 8).</li>");
  free(page);
  write_whole(results, "no line\n", 8);
  command_expect(&c, &folder, 1, "report", results, "--db", database, "-o", page_path);
  assert_contains(c.err, "results.jsonl:1: is no line of bench core or compare --json");
  command_release(&c);
}

/* A pruned database has the rules' choice only where it was among the kept variants, and the page says so. */
static void figures_of_a_pruned_database_say_so(void **state) {
  (void)state;
  static const char caveat[] = "<strong>Survivors only.</strong>";
  stand_in();
  set_paths("survivors");
  fill(database);
  char *page = make_page();
  assert_null(strstr(page, caveat));
  free(page);
  command c;
  command_expect(&c, &folder, 0, "db", "prune", "--keep", "1", "--db", database);
  command_release(&c);
  page = make_page();
  assert_contains(page, caveat);
  assert_contains(page, "<td>rules</td><td class=\"number\">1 of 3</td><td class=\"number\">1.000x</td>");
  free(page);
  char *script = text_of(folder_file(&folder, "script"));
  assert_contains(script, "rules, 1 of 3 cases");
  free(script);
}

static void other_device_classes_are_left_out(void **state) {
  (void)state;
  command c;
  stand_in();
  set_paths("classes");
  fill(database);
  wlmi_measurement_record other = measured("far", 9, "row_crc/cf=1,rows=4", 3), prepared, failed, cold;
  other.device = (wlmi_device_record){"NVIDIA H200", "cuda", "sm_90", 132, 1 << 30};
  prepared = failed = cold = other;
  prepared.variant = "merge_path/prepared=1"; /* appears on the page, but is not ranked as the best */
  prepared.time_ps /= 2;
  prepared.prepare_ps = 7000000;
  failed.variant = "row_vec/x=1";
  failed.failed = 1;
  failed.time_ps = failed.spread_ps = 0;
  failed.reason = "too <much>";
  cold.clock = WLM_CLOCK_COLD;
  put(database, (wlmi_measurement_record[]){other, prepared, failed, cold}, 4);

  char *page = make_page(); /* by default the page shows the device class with the most measurements */
  assert_contains(page, "host/x86_64/");
  assert_contains(page, "cuda/sm_90/NVIDIA H200/132 (4)");
  free(page);
  command_expect(&c, &folder, 0, "report", "--db", database, "-o", "-", "--device", "cuda:0");
  assert_sound(c.out);
  assert_contains(c.out, "<h1>warploom: what was measured on NVIDIA H200</h1>");
  assert_contains(c.out, "4 (1 failed, 1 with a cold cache)");
  assert_contains(c.out, "<td>GE-SpMM</td><td class=\"number\">1</td><td class=\"number\">1.000x</td>");
  char *json = data_of(c.out);
  assert_json_at(json, "$.cases[0].candidates[0][1]", "1.5");
  assert_json_at(json, "$.cases[0].candidates[0][3]", "7");
  assert_json_at(json, "$.cases[0].failed", "1");
  free(json);
  command_release(&c);
  command_expect(&c, &folder, 2, "report", "--db", database, "-o", page_path, "--device", "H100");
  assert_contains(c.err, "H100");
  assert_contains(c.err, "cuda/sm_90/NVIDIA H200/132");
  command_release(&c);
}

/* Stores any model of the device class: the test needs only that there is one. */
static void put_model(const wlmi_measurement_record *records, int64_t count) {
  const wlmi_limits limits = {.target = WLM_TARGET_HOST, .processors = 2, .l2_bytes = 1 << 20};
  wlmi_generator *generator;
  wlmi_models models;
  wlmi_text device_class = {0};
  wlm_store *store;
  wlmi_device_class(&records->device, &device_class);
  assert_status(WLM_OK, wlmi_generator_create(NULL, &generator));
  assert_status(WLM_OK, wlmi_models_train(generator, &limits, records, count, &models));
  assert_int_equal(models.count, 1);
  wlmi_model_record record = {.name = models.models[0].problems, .made_at = 1700000000};
  assert_status(WLM_OK, wlmi_model_write(&models.models[0], &record.data, &record.size));
  assert_status(WLM_OK, wlmi_store_open(database, WLM_STORE_WRITE, &store));
  assert_status(WLM_OK, wlmi_store_put_model(store, device_class.data, &record));
  wlmi_store_close(store);
  wlmi_free(record.data);
  wlmi_models_release(&models);
  wlmi_generator_destroy(generator);
  wlmi_text_release(&device_class);
}

/* ROW16 wins on every matrix, which the rules do not know and a model trained on 48 of the 64 matrices does. */
static void models_are_trained_without_the_tested_matrices(void **state) {
  (void)state;
  enum { MATRICES = 64, VARIANTS = 3 };
  static const char *const variants[VARIANTS] = {ROW16, ROW128, NNZ};
  wlmi_measurement_record records[MATRICES * VARIANTS];
  command c;
  for (int i = 0; i < MATRICES * VARIANTS; i++) {
    const int id = i / VARIANTS + 10;
    records[i] = measured("m", id, variants[i % VARIANTS], (i % VARIANTS + 1) * id);
    records[i].stats.nnz = 500 * id;
    records[i].stats.mean = 0.5 * id;
  }
  stand_in();
  set_paths("models");
  put(database, records, MATRICES * VARIANTS);
  char *page = make_page();
  assert_null(strstr(page, "<td>predicted"));
  free(page);
  put_model(records, MATRICES * VARIANTS);
  command_expect(&c, &folder, 0, "report", "--db", database, "-o", page_path);
  assert_contains(c.err, "training");
  command_release(&c);
  page = text_of(page_path);
  assert_sound(page);
  assert_contains(page, "<td>rules</td><td class=\"number\">64</td><td class=\"number\">2.000x</td>");
  assert_contains(page, "<td>predicted</td><td class=\"number\">64</td><td class=\"number\">1.000x</td>");
  free(page);
  replace_gnuplot(NULL); /* report looks for gnuplot before it trains */
  command_expect(&c, &folder, 2, "report", "--db", database, "-o", page_path);
  assert_null(strstr(c.err, "training"));
  command_release(&c);
}

static void empty_database_says_so(void **state) {
  (void)state;
  replace_gnuplot(NULL); /* an empty page needs no gnuplot */
  set_paths("empty");
  put(database, NULL, 0);
  char *page = make_page();
  assert_contains(page, "holds no measurements");
  assert_contains(page, "warploom tune");
  free(page);
}

static void failures_leave_the_old_page(void **state) {
  (void)state;
  command c;
  set_paths("failures");
  fill(database);
  write_whole(page_path, "old", 3);
  replace_gnuplot(NULL);
  command_expect(&c, &folder, 2, "report", "--db", database, "-o", page_path);
  assert_contains(c.err, "apt-get install gnuplot-nox");
  assert_string_equal(c.out, "");
  command_release(&c);
  replace_gnuplot("#!/bin/sh\nexit 3\n");
  command_expect(&c, &folder, 1, "report", "--db", database, "-o", page_path);
  assert_contains(c.err, "could not draw");
  command_release(&c);
  char *kept = text_of(page_path);
  assert_string_equal(kept, "old");
  free(kept);

  stand_in();
  char nowhere[320];
  snprintf(nowhere, sizeof nowhere, "%s", folder_file(&folder, "no-such-folder/page.html"));
  command_expect(&c, &folder, 1, "report", "--db", database, "-o", nowhere);
  assert_contains(c.err, "no-such-folder/page.html");
  assert_string_equal(c.out, "");
  command_release(&c);
  command_expect(&c, &folder, 1, "report", "--db", "no-such.db", "-o", page_path);
  assert_contains(c.err, "no-such.db");
  command_release(&c);
  command_expect(&c, &folder, 2, "report", "--db", database);
  assert_contains(c.err, "-o FILE");
  command_release(&c);
  free(make_page()); /* replaces the old page */
  command_expect(&c, &folder, 0, "db", "check", "--db", database);
  command_release(&c);
}

/* ---- with real programs --------------------------------------------------------------------------------------- */

static const char *find_program(const char *const *names) {
  static char found[512];
  char *path = strdup(getenv("PATH")), *rest = NULL;
  *found = 0;
  for (char *place = strtok_r(path, ":", &rest); place && !*found; place = strtok_r(NULL, ":", &rest))
    for (const char *const *name = names; *name && !*found; name++) {
      snprintf(found, sizeof found, "%s/%s", place, *name);
      if (access(found, X_OK)) *found = 0;
    }
  free(path);
  return *found ? found : NULL;
}

static void needs_gnuplot(void) {
  if (!find_program((const char *const[]){"gnuplot", NULL}))
    test_missing("gnuplot", "gnuplot", "the pictures of report are not drawn");
}

static void gnuplot_draws(void **state) {
  (void)state;
  command c;
  needs_gnuplot();
  set_paths("drawn");
  fill(database);
  command_expect(&c, &folder, 0, "report", "--db", database, "-o", page_path);
  assert_string_equal(c.err, ""); /* gnuplot printed no warning */
  command_release(&c);
  char *page = text_of(page_path);
  int pictures = 0;
  assert_sound(page);
  for (const char *at = page; (at = strstr(at, "data:image/svg+xml;base64,")); at++, pictures++)
    assert_true(strcspn(at, "\"") > 4000);
  assert_int_equal(pictures, 1 + 2 + 2); /* one N; speed-up and regret; coverage */
  free(page);
}

/* Measurements that a logarithmic axis cannot show, or without a time, still make a page, and gnuplot prints no
 * warning. */
static void odd_measurements_are_drawn(void **state) {
  (void)state;
  needs_gnuplot();
  wlmi_measurement_record odd[7];
  enum { ODD = sizeof odd / sizeof *odd };
  for (int i = 0; i < ODD; i++) odd[i] = measured("odd", i, ROW128, 10);
  odd[0].stats.nnz = odd[0].stats.longest = 0;
  odd[0].stats.cv = 0;
  odd[1].failed = 1;
  odd[1].time_ps = odd[1].spread_ps = 0;
  odd[1].reason = "no";
  odd[2].prepare_ps = 1;
  odd[3].problem = "of another version";
  odd[4].stats.cv = 400;
  odd[4].stats.rows = 1000000000;
  odd[4].stats.nnz = 100000000000;
  odd[5].clock = WLM_CLOCK_COLD;
  odd[6].time_ps = INT64_MAX;
  odd[6].made_at = 253402300799;
  odd[6].matrix_name = NULL;
  for (int i = 0; i <= ODD; i++) { /* each measurement alone, then all together */
    command c;
    char name[16];
    snprintf(name, sizeof name, "odd-%d", i);
    set_paths(name);
    put(database, i < ODD ? &odd[i] : odd, i < ODD ? 1 : ODD);
    command_expect(&c, &folder, 0, "report", "--db", database, "-o", page_path);
    assert_string_equal(c.err, "");
    command_release(&c);
    char *page = text_of(page_path), *json = data_of(page);
    assert_sound(page);
    assert_true(json_is_valid(json));
    free(json);
    free(page);
  }
}

/* `watch` records errors from the start. `probe` runs at the end: it chooses other matrices and writes what the page
 * shows into attributes of the body. */
static const char watch[] =
    "<script>window.errors = [];\n"
    "addEventListener('error', (e) => errors.push(e.message));\n"
    "addEventListener('securitypolicyviolation', (e) => errors.push(e.violatedDirective));</script>";
static const char probe[] =
    "<script>addEventListener('load', () => {\n"
    "  const tell = (name, value) => document.body.setAttribute('data-' + name, value);\n"
    "  const select = document.getElementById('matrix'), rows = document.getElementById('rows');\n"
    "  const first = () => rows.rows[0].cells[0].textContent;\n"
    "  const chosen = () => [...rows.rows].map((r) => r.cells[6].textContent).join('; ');\n"
    "  const choose = (name) => {\n"
    "    select.value = [...select.options].find((o) => o.textContent === name).value;\n"
    "    select.dispatchEvent(new Event('change'));\n"
    "  };\n"
    "  tell('matrices', select.options.length);\n"
    "  choose('b'); tell('b', first() + ' ' + rows.rows.length);\n"
    "  choose('c'); tell('c', first() + ' ' + rows.rows.length);\n"
    "  tell('chosen', chosen());\n"
    "  tell('about', document.getElementById('about').textContent.slice(0, 9));\n"
    "  tell('pictures', [...document.images].filter((i) => i.naturalWidth > 0).length);\n"
    "  tell('scripts', document.scripts.length);\n"
    "  const map = document.querySelector('figure[data-n]'), tip = document.querySelector('.tip'), seen = new Set();\n"
    "  const box = map.querySelector('img').getBoundingClientRect();\n"
    "  for (let x = 0; x < box.width; x += 8) for (let y = 0; y < box.height; y += 8) {\n"
    "    map.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + x, clientY: box.top + y }));\n"
    "    if (!tip.hidden) seen.add(tip.textContent.slice(0, 50));\n"
    "  }\n"
    "  tell('tips', [...seen].sort().join('; '));\n"
    "  tell('overflow', document.documentElement.scrollWidth > document.documentElement.clientWidth);\n"
    "  tell('errors', errors.join('; ') || 'none');\n"
    "});</script>";

/* The page with `watch` at its beginning and `probe` at its end; free(). */
static char *watched(const char *page) {
  const char *head = strstr(page, "<meta charset"), *end = strstr(page, "</body>");
  char *text = malloc(strlen(page) + sizeof watch + sizeof probe);
  assert_true(head && end && text);
  sprintf(text, "%.*s%s%.*s%s%s", (int)(head - page), page, watch, (int)(end - head), head, probe, end);
  return text;
}

static void page_works_in_a_browser(void **state) {
  (void)state;
  needs_gnuplot();
  const char *browser = find_program((const char *const[]){"chromium", "chromium-browser", "google-chrome", NULL});
  if (!browser) test_missing("chromium", "chromium", "the page of report is not looked at in a browser");
  set_paths("shown");
  fill(database);
  char *page = make_page(), *text = watched(page), url[400], profile[400];
  write_whole(page_path, text, strlen(text));
  snprintf(url, sizeof url, "file://%s", page_path);
  snprintf(profile, sizeof profile, "--user-data-dir=%s", folder_file(&folder, "profile"));
  command c;
  command_start(
      &c, &folder,
      (const char *const[]){browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                            "--window-size=500,900", "--enable-logging=stderr", profile, "--dump-dom", url, NULL});
  command_wait(&c);
  if (c.code) fail_msg("%s: exit code %d\n%s", browser, c.code, c.err);
  assert_null(strstr(c.err, "CONSOLE"));
  const char *body = strstr(c.out, "<body");
  assert_non_null(body);
  assert_contains(body, "data-matrices=\"3\"");
  assert_contains(body, "data-b=\"" NNZ " 3\"");
  assert_contains(body, "data-c=\"" ROW128 " 4\"");
  assert_contains(body, "data-chosen=\"rules, borrowed; one fixed; ; \"");
  assert_contains(body, "data-about=\"c: 1,000,\"");
  assert_contains(body, "data-pictures=\"5\"");
  /* two of the page and two of this test, so no matrix name became a script */
  assert_contains(body, "data-scripts=\"4\"");
  assert_contains(body, "c: " ROW128 ", 10.00 us"); /* the text under the pointer */
  assert_contains(body, "data-overflow=\"false\"");
  assert_contains(body, "data-errors=\"none\"");
  command_release(&c);
  free(text);
  free(page);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(page_shows_the_measurements, restore_path),
      cmocka_unit_test_teardown(verdict_reads_results, restore_path),
      cmocka_unit_test_teardown(figures_of_a_pruned_database_say_so, restore_path),
      cmocka_unit_test_teardown(other_device_classes_are_left_out, restore_path),
      cmocka_unit_test_teardown(models_are_trained_without_the_tested_matrices, restore_path),
      cmocka_unit_test_teardown(empty_database_says_so, restore_path),
      cmocka_unit_test_teardown(failures_leave_the_old_page, restore_path),
      cmocka_unit_test_teardown(gnuplot_draws, restore_path),
      cmocka_unit_test_teardown(odd_measurements_are_drawn, restore_path),
      cmocka_unit_test_teardown(page_works_in_a_browser, restore_path),
  };
  usual_path = strdup(getenv("PATH"));
  return cmocka_run_group_tests(tests, home_begin, folder_end);
}
