/* Compiles the covering set with NVRTC. No kernel may spill or use more registers than its family.lua allows. The
 * short run compiles the f32 entries for sm_90, the first entry of each family and operation for all architectures, and
 * what the seed draws of the others (support/seed.h) for one, in turns. WARPLOOM_FULL compiles every
 * entry of the full set for one architecture, in turns, the f32 entries for sm_90, and the first entry of each variant
 * for all.
 *
 * If NVRTC has the version of registers.tsv, the registers of the f32 entries on sm_90 must be those in that table, and
 * so must the instructions of their PTX. These stand for the time of compiling, which grows in proportion (correlation
 * 0.98 over 38 kernels of 16 families) and differs from run to run. WARPLOOM_UPDATE_GOLDEN=1 or the target golden
 * rewrites the table. With an architecture as the argument, such as 90, only that one is compiled for. With the
 * argument "families" the first entry of each family and operation is compiled for one architecture, in turns.
 *
 * With the argument "times" nothing is tested: the program prints the processor time that NVRTC takes for the first
 * entry of each family and operation on sm_90, the least of five compilations, and that time divided by the least of
 * row_vec. */
#include <sys/mman.h>
#include <time.h>

#include "runtime/cuda/nvrtc.h"
#include "support/covering.h"
#include "support/emit_fixture.h"
#include "support/golden.h"
#include "support/parallel.h"
#include "support/seed.h"
#include "support/test.h"

enum { MOST_COMPILES = 600, MOST_COMPILES_FULL = 12000 };
static const int architectures[] = {80, 86, 89, 90, 100, 120};
enum { ONE_IN = 12 };
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

typedef struct compile {
  const covering_entry *entry;
  int arch;
} compile;

/* What the compiler makes of an entry's kernels: the most registers, all bytes spilled, and the instructions of their
 * PTX. */
typedef struct figures {
  int64_t registers, spilled, instructions;
} figures;

typedef struct suite {
  wlmi_generator *generator;
  covering set;
  compile *compiles;
  figures *figures; /* of each compile; processes share them */
  int64_t count;
} suite;

static suite s;
static int only_arch; /* 0: all */
static int only_families, only_times;

static wlmi_limits limits_of(int arch) {
  wlmi_limits limits = emit_smallest;
  limits.arch = arch;
  if (arch > emit_smallest.arch) limits.shared_bytes = emit_cuda.shared_bytes;
  return limits;
}

static void describe(void *user, int64_t index) {
  (void)user;
  char text[512];
  covering_describe(s.compiles[index].entry, text, sizeof text);
  fprintf(stderr, "sm_%d %s\n", s.compiles[index].arch, text);
}

/* The largest of the numbers that stand between `before` and `behind` in the compiler's log; -1 where there is
 * none. */
static int64_t largest_number(const char *log, const char *before, const char *behind) {
  int64_t largest = -1;
  for (const char *at = log; (at = strstr(at, before)); at++) {
    char *end;
    long value = strtol(at + strlen(before), &end, 10);
    if (end > at + strlen(before) && !strncmp(end, behind, strlen(behind)) && value > largest) largest = value;
  }
  return largest;
}

/* Lines of PTX that are indented, end with a semicolon and are no directive. */
static int64_t count_instructions(const char *ptx) {
  int64_t count = 0;
  for (const char *line = ptx, *end; (end = strchr(line, '\n')); line = end + 1)
    count += end > line + 1 && line[0] == '\t' && line[1] != '.' && line[1] != '/' && end[-1] == ';';
  return count;
}

static wlm_status check_log(const wlmi_program *program, const char *log, figures *found) {
  int64_t registers = largest_number(log, "Used ", " registers");
  int64_t stores = largest_number(log, "bytes stack frame, ", " bytes spill stores");
  int64_t loads = largest_number(log, "bytes spill stores, ", " bytes spill loads");
  if (registers < 0 || stores < 0 || loads < 0)
    return wlmi_fail(WLM_ERR_MISMATCH, "the compiler's log tells no registers or spills: %s", log);
  found->registers = registers;
  found->spilled = stores + loads;
  if (stores + loads > program->max_spilled)
    return wlmi_fail(WLM_ERR_MISMATCH, "spills %lld bytes, family.lua says at most %d: %s", (long long)(stores + loads),
                     program->max_spilled, log);
  if (registers > program->max_registers)
    return wlmi_fail(WLM_ERR_MISMATCH, "uses %lld registers, family.lua says at most %d", (long long)registers,
                     program->max_registers);
  return WLM_OK;
}

static int one(void *user, int64_t index) {
  const compile *c = &s.compiles[index];
  const wlmi_limits limits = limits_of(c->arch);
  HELD(wlmi_program) program = {0};
  HELD(wlmi_text) log = {0};
  wlmi_nvrtc_code cubin = {0}, ptx = {0};
  wlm_status status = wlmi_generator_emit(s.generator, c->entry->variant, &c->entry->spec, &limits, &program);
  if (status == WLM_OK) status = wlmi_nvrtc_both(program.source, "emitted", c->arch, &cubin, &ptx, &log);
  if (status == WLM_OK) s.figures[index].instructions = count_instructions(ptx.bytes);
  if (status == WLM_OK) status = check_log(&program, log.data ? log.data : "", &s.figures[index]);
  if (status != WLM_OK) {
    fprintf(stderr, "%s: ", wlm_error_detail());
    describe(user, index);
  }
  wlmi_free(cubin.bytes);
  wlmi_free(ptx.bytes);
  return status != WLM_OK;
}

static int is_in_table(const compile *c) {
  return c->arch == emit_cuda.arch && c->entry->spec.problem.dense_type == WLM_F32;
}

static int is_compiled(int64_t index, int a) {
  const compile c = {&s.set.entries[index], architectures[a]};
  const int its_turn = index % ARCHITECTURES == a;
  if (only_families) return c.entry->in_families && its_turn;
  if (is_in_table(&c) || c.entry->in_families) return 1;
  if (covering_full()) return c.entry->first || its_turn;
  char text[512];
  covering_describe(c.entry, text, sizeof text);
  return its_turn && test_is_drawn(text, ONE_IN);
}

/* The set is made for the smallest of the devices, so that each of its entries is a candidate on all. */
static void plan_compiles(void) {
  const size_t most = (size_t)s.set.count * ARCHITECTURES;
  s.compiles = calloc(most, sizeof *s.compiles);
  s.figures = mmap(NULL, most * sizeof *s.figures, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_non_null(s.compiles);
  assert_true(s.figures != MAP_FAILED);
  for (int64_t i = 0; i < s.set.count; i++)
    for (int a = 0; a < ARCHITECTURES; a++) {
      const compile c = {&s.set.entries[i], architectures[a]};
      if (only_arch && c.arch != only_arch) continue;
      if (is_compiled(i, a)) s.compiles[s.count++] = c;
    }
}

FIXTURE(begin) { return wlmi_generator_create(NULL, &s.generator) != WLM_OK; }

FIXTURE(end) {
  free(s.compiles);
  if (s.figures) munmap(s.figures, (size_t)s.set.count * ARCHITECTURES * sizeof *s.figures);
  covering_release(&s.set);
  wlmi_generator_destroy(s.generator);
  return 0;
}

TEST(emitted_kernels_compile) {
  if (only_times) return;
  test_needs_nvrtc();
  covering_get(s.generator, &emit_smallest, covering_full(), &s.set);
  plan_compiles();
  printf("nvrtc: %lld variants, %lld compilations\n", (long long)s.set.count, (long long)s.count);
  assert_true(s.set.count > 100);
  assert_true(s.count > 0 && s.count <= (covering_full() ? MOST_COMPILES_FULL : MOST_COMPILES));
  assert_int_equal(test_in_parallel(s.count, one, describe, NULL), 0);
}

/* ---- registers ------------------------------------------------------------------------------------------ */

static const char table[] = WLM_SOURCE_DIR "/tests/nvrtc/registers.tsv";

/* "V12.4.131", from the comment at the top of its PTX: nvrtcVersion leaves out the last number. */
static void nvrtc_build(char *build, size_t size) {
  WLM_FREED void *ptx = NULL;
  GET(size_t, ptx_size,
      wlmi_nvrtc_compile("extern \"C\" __global__ void nothing() {}", "nothing", 90, 1, &ptx, &ptx_size, NULL));
  const char *at = strstr(ptx, ", V");
  assert_non_null(at);
  snprintf(build, size, "%.*s", (int)strcspn(at + 2, "\n\r "), at + 2);
}

TEST(registers_are_those_of_the_table) {
  char build[64], header[128], of_table[128];
  wlmi_text rows = {0};
  test_needs_nvrtc();
  if (covering_full() || only_families || only_times || (only_arch && only_arch != emit_cuda.arch))
    return; /* of no row of the table */
  nvrtc_build(build, sizeof build);
  snprintf(header, sizeof header, "# NVRTC %s, sm_%d: variant, n, problem, registers, bytes spilled, PTX instructions",
           build, emit_cuda.arch);
  golden_header(table, of_table, sizeof of_table);
  if (!golden_updates() && strcmp(of_table, header))
    test_missing("registers", "NVRTC of the table's version", of_table);
  for (int64_t i = 0; i < s.count; i++) {
    const compile *c = &s.compiles[i];
    char key[WLMI_SPEC_KEY];
    if (!is_in_table(c)) continue;
    wlmi_spec_key(&c->entry->spec, key);
    wlmi_text_printf(&rows, "%s\t%lld\t%s\t%lld\t%lld\t%lld\n", c->entry->variant, (long long)c->entry->spec.problem.n,
                     key, (long long)s.figures[i].registers, (long long)s.figures[i].spilled,
                     (long long)s.figures[i].instructions);
  }
  assert_false(rows.failed);
  const int same = golden_is(table, header, &rows);
  wlmi_text_release(&rows);
  if (!same) fail_msg("registers differ from those in %s; " GOLDEN_UPDATE, table);
}

/* ---- times ---------------------------------------------------------------------------------------------- */

static double seconds_of(const covering_entry *entry) {
  const wlmi_limits limits = limits_of(emit_cuda.arch);
  double least = INFINITY;
  HOLD(wlmi_program, program, wlmi_generator_emit(s.generator, entry->variant, &entry->spec, &limits, &program));
  for (int i = 0; i < 5; i++) {
    size_t size;
    const clock_t begin = clock();
    WLM_FREED GET(void *, cubin, wlmi_nvrtc_compile(program.source, "emitted", emit_cuda.arch, 0, &cubin, &size, NULL));
    least = fmin(least, (double)(clock() - begin) / CLOCKS_PER_SEC);
  }
  return least;
}

TEST(times) {
  double *seconds, unit = INFINITY;
  if (!only_times) return;
  test_needs_nvrtc();
  covering_get(s.generator, &emit_smallest, 0, &s.set);
  assert_non_null(seconds = calloc((size_t)s.set.count, sizeof *seconds));
  for (int64_t i = 0; i < s.set.count; i++) {
    const covering_entry *entry = &s.set.entries[i];
    if (!entry->in_families) continue;
    seconds[i] = seconds_of(entry);
    if (!strncmp(entry->variant, "row_vec/", 8)) unit = fmin(unit, seconds[i]);
  }
  for (int64_t i = 0; i < s.set.count; i++) {
    char text[512];
    if (!seconds[i]) continue;
    covering_describe(&s.set.entries[i], text, sizeof text);
    printf("%.1f ms, %.2f of row_vec: %s\n", 1e3 * seconds[i], seconds[i] / unit, text);
  }
  free(seconds);
}

GROUP(begin, end)

int main(int argc, char **argv) {
  only_times = argc > 1 && !strcmp(argv[1], "times");
  only_families = argc > 1 && !strcmp(argv[1], "families");
  only_arch = argc > 1 ? atoi(argv[1]) : 0;
  return test_run();
}
