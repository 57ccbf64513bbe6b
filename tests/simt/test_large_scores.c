/* Kernels of one operation make a score with the same bits, whatever variants the passes are: with scores of 1e8, each
 * other order of adding would give another weight. */
#include <omp.h>

#include "runtime/devices.h"
#include "simt/shim/simt_device.h"
#include "support/bare_plan.h"
#include "support/calls.h"
#include "support/loaded.h"
#include "support/shapes.h"
#include "support/test.h"

enum { ROWS = 40, COLS = 2 * ROWS, EDGES = 2 * ROWS, MOST = 128 };
enum { FORWARD, GRADIENT, OF_ROWS, PASSES };
static const double SLOPE = 0.3; /* and the scale of products */

/* Row i has the columns 2i and 2i + 1 with equal scores, so each weight is 1/2. */
typedef struct graph {
  int32_t rowptr[ROWS + 1], colind[EDGES], t_rowptr[COLS + 1], t_colind[EDGES], order[EDGES];
  float q[ROWS * MOST], k[COLS * MOST], b[COLS * MOST], att[MOST], values[EDGES * MOST], x[ROWS * MOST];
  float c[ROWS * MOST], db[COLS * MOST], delta[ROWS * MOST], dscores[EDGES * MOST], datt[ROWS * MOST];
  _Alignas(16) float softmax[2 * ROWS * MOST];
} graph;

static float draw(test_random *random) { return (float)test_draw(random, 1 << 24) / 997 - 8000; }

static void make(graph *g, const wlm_problem *p) {
  test_random random = {5};
  memset(g, 0, sizeof *g);
  for (int i = 0; i <= ROWS; i++) g->rowptr[i] = 2 * i;
  for (int k = 0; k <= COLS; k++) g->t_rowptr[k] = k;
  for (int e = 0; e < EDGES; e++) g->colind[e] = g->order[e] = e, g->t_colind[e] = e / 2;
  for (int64_t j = 0; j < p->n; j++) g->att[j] = draw(&random);
  for (int64_t i = 0; i < ROWS * p->n; i++) g->q[i] = draw(&random), g->x[i] = (float)(1 + test_draw(&random, 15)) / 16;
  for (int64_t i = 0; i < ROWS; i++)
    for (int64_t j = 0, first = 2 * i * p->n, second = first + p->n; j < p->n; j++) {
      g->k[first + j] = g->k[second + j] = draw(&random);
      g->b[first + j] = g->b[second + j] = p->score == WLM_SCORE_GATV2 ? draw(&random) : 1;
    }
  for (int64_t i = 0; i < ROWS; i++)
    for (int64_t head = 0, at = 2 * i * p->heads; head < p->heads; head++) {
      g->values[at + head] = g->values[at + p->heads + head] = draw(&random) / 7;
      if (p->score != WLM_SCORE_GAT) continue;
      const float right = draw(&random); /* cols x heads */
      g->k[at + head] = g->k[at + p->heads + head] = right;
    }
}

static void run(wlmi_device *device, wlmi_generator *generator, const wlmi_spec *spec, const char *variant, graph *g) {
  wlm_plan plan = {0};
  const int back = spec->problem.transpose;
  HELD(loaded) l = loaded_variant(device, generator, variant, spec);
  wlm_csr csr =
      CSR(.rows = back ? COLS : ROWS, .cols = back ? ROWS : COLS, .nnz = EDGES,
          .rowptr = back ? g->t_rowptr : g->rowptr, .colind = back ? g->t_colind : g->colind, .values = g->values);
  assert_status(WLM_OK, bare_plan_fill(&plan, device, &l.program, l.kernels, &csr, spec));
  plan.bound.args.order = back ? g->order : NULL;
  wlm_attention_operands attention =
      ATTENTION_OPERANDS(.q = g->q, .k = g->k, .att = g->att, .left = g->q, .right = g->k, .softmax = g->softmax,
                         .delta = g->delta, .slope = SLOPE, .scale = SLOPE, .dscores = g->dscores);
  wlm_execute_args args = EXECUTE_ARGS(.b = g->b, .c = g->c, .db = g->db, .x = g->x, .attention = &attention);
  if (spec->problem.score == WLM_SCORE_GATV2) attention.datt = g->datt;
  FREED void *workspace = calloc(1, wlm_plan_workspace_size(&plan) + 1);
  FREED void *prepared = calloc(1, wlm_plan_prepared_size(&plan) + 1);
  assert_true(workspace && prepared);
  if (wlm_plan_prepared_size(&plan)) assert_status(WLM_OK, wlm_plan_prepare(&plan, prepared, NULL));
  args.workspace = workspace;
  assert_status(WLM_OK, test_execute_args(&plan, args));
  assert_status(WLM_OK, device->ops->synchronize(device, NULL));
}

static void near(double found, double wanted, double size, const wlmi_spec *spec, const char *variant) {
  if (fabs(found - wanted) <= 1e-4 * size) return;
  fail_msg("%s, n = %d, %d heads, score %d: %g instead of %g", variant, (int)spec->problem.n, (int)spec->problem.heads,
           (int)spec->problem.score, found, wanted);
}

/* The gradients of each row and head, from weights of 1/2 and a delta of 0. */
static void check(const graph *g, const wlmi_spec *spec, int pass, const char *variant) {
  const wlm_problem *p = &spec->problem;
  const int64_t width = p->n / p->heads;
  for (int64_t at = 0; at < ROWS * p->heads; at++) {
    const int64_t i = at / p->heads, head = at % p->heads, first = head * width, edge = 2 * i * p->heads + head;
    double product = 0, size = 0;
    for (int64_t j = first; j < first + width; j++) {
      const double xb = (double)g->x[i * p->n + j] * (double)g->b[2 * i * p->n + j];
      product += xb;
      size += fabs(xb);
    }
    if (pass == FORWARD) near((double)g->softmax[2 * at + 1], 0.5, 1, spec, variant);
    if (pass == GRADIENT && p->score != WLM_SCORE_GAT)
      for (int e = 0; e < 2; e++) near((double)g->dscores[edge + e * p->heads], product / 2, size, spec, variant);
    for (int64_t j = first; j < first + width; j++) {
      const double x = (double)g->x[i * p->n + j], q = (double)g->q[i * p->n + j];
      const double z = q + (double)g->b[2 * i * p->n + j], att = (double)g->att[j] * (z > 0 ? 1 : SLOPE);
      const double by = p->score == WLM_SCORE_DOT ? SLOPE * (double)g->k[2 * i * p->n + j] : att;
      if (pass == GRADIENT && p->score != WLM_SCORE_GATV2)
        for (int e = 0; e < 2; e++) near((double)g->db[(2 * i + e) * p->n + j], x / 2, 1, spec, variant);
      if (pass == OF_ROWS) near((double)g->c[i * p->n + j], product * by, size * fabs(by), spec, variant);
    }
  }
}

/* Variants of each pass with different lanes and vectors; the gradients read what the last one stored. */
static void check_passes(wlmi_device *device, wlmi_generator *generator, wlm_problem problem) {
  static graph g;
  wlm_csr csr = CSR(.values = &csr);
  make(&g, &problem);
  for (int pass = FORWARD; pass < PASSES; pass++) {
    if (pass == OF_ROWS && problem.score == WLM_SCORE_GAT) continue;
    problem.operation = pass == OF_ROWS ? WLM_ATTENTION_ROWS : WLM_ATTENTION;
    problem.transpose = pass == GRADIENT;
    GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
    OWN(wlmi_candidates, names, wlmi_generator_describe(generator, &spec, &device->info.limits, &names));
    for (int64_t i = 0, seen = 0; i < names->count; i++) { /* one for each number of lanes, or for each tile */
      const char *const variant = names->candidates[i].variant, *const lanes = strstr(variant, "lanes=");
      const int64_t number = lanes ? strtol(lanes + strlen("lanes="), NULL, 10) : 1;
      if (seen & number) continue;
      seen |= number;
      run(device, generator, &spec, variant, &g);
      check(&g, &spec, pass, variant);
    }
  }
}

static void check_on(wlmi_device *device) {
  static const struct {
    wlm_score score;
    int64_t n, heads;
  } problems[] = {{WLM_SCORE_GATV2, 64, 1}, {WLM_SCORE_DOT, 48, 2}, {WLM_SCORE_GAT, 32, 4}};
  GET(wlmi_generator *, generator, wlmi_generator_create(NULL, &generator));
  for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
    wlm_problem problem = PROBLEM(.score = problems[i].score, .n = problems[i].n, .heads = problems[i].heads);
    check_passes(device, generator, problem);
  }
  wlmi_generator_destroy(generator);
  device->ops->close(device);
}

TEST(on_cuda) {
  GET(wlmi_device *, device, simt_device_open(&device));
  check_on(device);
}

TEST(on_the_host) {
  GET(wlmi_device *, device, wlmi_host_device_open(&device));
  check_on(device);
}

int main(void) {
  omp_set_num_threads(1);
  return test_run();
}
