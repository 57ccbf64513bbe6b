/* The sources that families emit: golden.tsv has hashes of each family's first candidate and of all its candidates for
 * several problems, so a review of a change shows which families and problems it affects. WARPLOOM_UPDATE_GOLDEN=1 or
 * the target golden rewrites the table, but for families whose kernels changed and whose version did not, because
 * measurements name the version. WARPLOOM_MEASURE_THE_SAME names families whose new kernels take the time of the old
 * ones. */
#include <errno.h>
#include <sys/stat.h>

#include "core/base/hash.h"
#include "support/command.h"
#include "support/emit_fixture.h"
#include "support/golden.h"
#include "support/test.h"

static const char table[] = WLM_SOURCE_DIR "/tests/emit/golden.tsv";
static const char header[] = "# family, problem, variant, hash of the source, version, hash of all kernels";
/* The test writes each hashed source here; `last` has the sources of the run in which the table was last up to date. */
static const char folder_now[] = WLM_BINARY_DIR "/golden", folder_last[] = WLM_BINARY_DIR "/golden/last";

static const struct problem {
  const char *name;
  int64_t n;
  wlm_operation operation;
  wlm_reduce reduce;
  wlm_type type;
  int sampled, has_positions, transposed;
  const char *custom; /* of a message */
} problems[] = {{"plain", 128, WLM_SPMM, WLM_SUM, WLM_F32, 0, 0, 0, NULL},
                {"narrow", 4, WLM_SPMM, WLM_SUM, WLM_F32, 0, 0, 0, NULL},
                {"sampled", 128, WLM_SPMM, WLM_SUM, WLM_F32, 1, 0, 0, NULL},
                {"sampled-back", 128, WLM_SPMM, WLM_SUM, WLM_F32, 1, 0, 1, NULL},
                {"gradient", 128, WLM_SDDMM, WLM_SUM, WLM_F32, 0, 0, 0, NULL},
                {"positions", 128, WLM_SPMM, WLM_MAX, WLM_F32, 0, 1, 0, NULL},
                {"f16-mean", 128, WLM_SPMM, WLM_MEAN, WLM_F16, 0, 0, 0, NULL},
                {"transposed", 128, WLM_SPMM, WLM_SUM, WLM_F32, 0, 0, 1, NULL},
                {"attention", 64, WLM_ATTENTION, WLM_SUM, WLM_F32, 0, 0, 0, NULL},
                {"attention-back", 64, WLM_ATTENTION, WLM_SUM, WLM_F32, 0, 0, 1, NULL},
                {"message", 128, WLM_MESSAGE, WLM_CUSTOM, WLM_F16, 0, 1, 0, "max=relu(b+e);edge_sum=x*b"},
                {"message-back", 64, WLM_MESSAGE, WLM_CUSTOM, WLM_F32, 0, 0, 1, "d:row;w:row:wins;sum=d*w*a;edge=d*w"},
                {"batch", 128, WLM_SPMM, WLM_SUM, WLM_F32, 0, 0, 0, NULL}};
enum { PROBLEMS = sizeof problems / sizeof *problems };

static wlmi_spec spec_of(const struct problem *p) {
  wlm_problem problem =
      PROBLEM(.n = p->n, .operation = p->operation, .reduce = p->reduce, .custom = p->custom, .dense_type = p->type,
              .sampling.sample = p->sampled ? WLM_SAMPLE_BUCKET : WLM_SAMPLE_NONE,
              .sampling.width = p->sampled ? 64 : 0, .want_argmax = p->has_positions, .transpose = p->transposed);
  wlm_csr csr = CSR(.value_type = p->type);
  wlmi_spec spec;
  problem.batch = strcmp(p->name, "batch") ? 1 : 2;
  csr.values = &csr; /* the spec depends only on whether there are values */
  assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &spec));
  return spec;
}

/* The source, and the launches as text. */
static void add_kernel(wlmi_hasher *hasher, const wlmi_program *program) {
  wlmi_hasher_add(hasher, program->source, strlen(program->source));
  for (int i = 0; i < program->pass_count; i++) {
    const wlmi_pass *p = &program->passes[i];
    const int64_t numbers[] = {
        p->when,    p->units,        p->axis,       p->units_per_block, p->columns_per_block, p->wave,
        p->threads, p->shared_bytes, p->processors, p->dependent,       p->nonzeros_per_unit};
    wlmi_hasher_add(hasher, p->kernel, strlen(p->kernel));
    wlmi_hasher_add_int64(hasher, numbers, sizeof numbers / sizeof *numbers);
  }
}

/* Adds a row for the candidates of one family. */
static void add_row(const wlmi_candidate *candidates, int64_t count, const wlmi_spec *spec, const wlmi_limits *limits,
                    const char *problem, wlmi_text *rows) {
  const char *first = candidates->variant;
  const int family = (int)strcspn(first, "/");
  char hex[WLMI_HASH_HEX], path[512];
  wlmi_hash version;
  wlmi_hasher *hasher = wlmi_hasher_create();
  assert_non_null(hasher);
  for (int64_t i = 0; i < count; i++) {
    HOLD(wlmi_program, program, wlmi_generator_emit(emit_generator, candidates[i].variant, spec, limits, &program));
    add_kernel(hasher, &program);
    const size_t size = strlen(program.source);
    if (!i) {
      wlmi_hash_to_hex(wlmi_hash_bytes(program.source, size), hex);
      wlmi_text_printf(rows, "%.*s\t%s\t%s\t%s", family, first, problem, first, hex);
      snprintf(path, sizeof path, "%s/%.*s.%s.txt", folder_now, family, first, problem);
      write_whole(path, program.source, size);
    }
  }
  wlmi_hash_to_hex(wlmi_hasher_result(hasher), hex);
  wlmi_hasher_destroy(hasher);
  assert_true(wlmi_hash_from_hex(wlmi_family_version(wlmi_generator_families(emit_generator), first), &version));
  assert_true(version.high == 0 && version.low > 0); /* a number */
  wlmi_text_printf(rows, "\t%llu\t%s\n", (unsigned long long)version.low, hex);
}

static void add_rows(const struct problem *p, const wlmi_limits *limits, wlmi_text *rows) {
  const wlmi_spec spec = spec_of(p);
  OWN(wlmi_candidates, names, wlmi_generator_describe(emit_generator, &spec, limits, &names));
  for (int64_t i = 0, end; i < names->count; i = end) {
    const wlmi_candidate *first = &names->candidates[i];
    for (end = i + 1; end < names->count && names->candidates[end].value.family == first->value.family;) end++;
    add_row(first, end - i, &spec, limits, p->name, rows);
  }
}

static void every_family_has_a_row(const char *rows) {
  const wlmi_families *families = wlmi_generator_families(emit_generator);
  for (int i = 0; i < families->count; i++) {
    char begin[64];
    snprintf(begin, sizeof begin, "\n%s\t", families->list[i].name);
    if (!strstr(rows, begin)) fail_msg("%s: no problem of this test has candidates of it; add one", begin + 1);
  }
}

typedef struct row {
  char family[64], problem[64], source[WLMI_HASH_HEX], all[WLMI_HASH_HEX];
  long long version;
} row;

/* 0 where the line is no row. */
static int read_row(const char *line, row *r) {
  return sscanf(line, "%63s %63s %*s %32s %lld %32s", r->family, r->problem, r->source, &r->version, r->all) == 5;
}

/* The first family whose kernels changed from one table to another and whose version did not; "" if there is none.
 * `same`: the names of families whose new kernels take the time of the old ones. */
static const char *lacks_new_version(const char *old, const char *rows, const char *same) {
  static row now;
  for (const char *line = rows; line; line = strchr(line, '\n')) {
    row before;
    char key[160];
    if (!read_row(++line, &now) || strstr(same, now.family)) continue;
    snprintf(key, sizeof key, "\n%s\t%s\t", now.family, now.problem);
    const char *found = strstr(old, key);
    if (found && read_row(found + 1, &before) && before.version == now.version &&
        (strcmp(before.source, now.source) || strcmp(before.all, now.all)))
      return now.family;
  }
  return "";
}

TEST(changed_kernels_need_another_version) {
  static const char old[] = "# header\nvec\tplain\tvec/a=1\taa\t1\tbb\nvec\tnarrow\tvec/a=1\taa\t1\tbb\n";
  assert_string_equal(lacks_new_version(old, old, ""), "");
  assert_string_equal(lacks_new_version(old, "\nvec\tnarrow\tvec/a=1\tcc\t1\tbb\n", ""), "vec");
  assert_string_equal(lacks_new_version(old, "\nvec\tplain\tvec/a=1\taa\t1\tcc\n", ""), "vec");
  assert_string_equal(lacks_new_version(old, "\nvec\tplain\tvec/a=1\taa\t1\tcc\n", "row vec"), "");
  assert_string_equal(lacks_new_version(old, "\nvec\tplain\tvec/a=1\taa\t2\tcc\n", ""), "");
  assert_string_equal(lacks_new_version(old, "\nvec\tanother\tvec/a=1\tcc\t1\tcc\n", ""), "");
}

static void make_folder(const char *path) {
  if (mkdir(path, 0777) && errno != EEXIST) fail_msg("%s: %s", path, strerror(errno));
}

static void keep_texts(void) {
  make_folder(folder_last);
  if (system("cp '" WLM_BINARY_DIR "/golden/'*.txt '" WLM_BINARY_DIR "/golden/last'")) fail_msg("%s", folder_last);
}

TEST(sources_equal_the_table) {
  HELD(wlmi_text) rows = {0};
  make_folder(folder_now);
  wlmi_text_puts(&rows, "\n");
  for (int i = 0; i < PROBLEMS; i++) {
    add_rows(&problems[i], &emit_cuda, &rows);
    add_rows(&problems[i], &emit_host, &rows);
  }
  assert_false(rows.failed);
  every_family_has_a_row(rows.data);
  FREED char *old = text_of(table);
  const char *same_time = getenv("WARPLOOM_MEASURE_THE_SAME");
  const char *family = lacks_new_version(old, rows.data, same_time ? same_time : "");
  if (*family)
    fail_msg(
        "the kernels of %s changed and its version did not: raise `version` in templates/%s/family.lua; or, if they "
        "take the same time as before, update the table with WARPLOOM_MEASURE_THE_SAME='%s' in the environment, "
        "which may name several families",
        family, family, family);
  const int same = golden_is(table, header, &rows);
  if (!same)
    fail_msg(
        "families emit other sources than %s has; they are FAMILY.PROBLEM.txt in %s, and those of the last time "
        "that the table was right in %s: compare with diff -u; " GOLDEN_UPDATE,
        table, folder_now, folder_last);
  keep_texts();
}

GROUP(emit_begin, emit_end)
