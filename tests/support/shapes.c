#include "support/shapes.h"

#include "core/base/memory.h"

uint64_t test_draw(test_random *random, uint64_t below) {
  random->state ^= random->state << 13;
  random->state ^= random->state >> 7;
  random->state ^= random->state << 17;
  return (random->state >> 17) % below;
}

float test_draw_between(test_random *random, float low, float high) {
  return low + (high - low) * (float)test_draw(random, 1 << 24) / (float)(1 << 24);
}

typedef struct shape {
  const char *name;
  int64_t rows, cols;
  int64_t (*degree)(int64_t row, int64_t step, int64_t longest, test_random *random);
  int ascending; /* the columns of a row ascend, at most 20 + 3 per edge; otherwise they are drawn, and may be equal */
} shape;

#define DEGREE(name, ...)                                                                \
  static int64_t name(int64_t row, int64_t step, int64_t longest, test_random *random) { \
    return (void)row, (void)step, (void)longest, (void)random, (int64_t)(__VA_ARGS__);   \
  }
DEGREE(random_degree, test_draw(random, 21))
DEGREE(skewed_degree, row == 17 ? longest : (int64_t)test_draw(random, 4))
DEGREE(around_steps, (const int64_t[]){0, step - 1, step, step + 1, 1, 2 * step, 2 * step + 1, step / 3, 0}[row % 9])
DEGREE(whole_steps, row == 1 ? 2 * step : step)
DEGREE(mostly_empty, row % 17 == 16 ? 3 : 0)
DEGREE(one_row, step + 13)
DEGREE(nothing, 0)
DEGREE(overlapping, row % 8 == 5 ? 290 : (int64_t)test_draw(random, 60))

static const shape shapes[] = {
    {"random", 37, 45, random_degree, 0},
    {"skewed", 35, 45, skewed_degree, 0},
    {"around steps", 9, 29, around_steps, 0},
    {"whole steps", 3, 29, whole_steps, 0},
    {"mostly empty", 50, 20, mostly_empty, 0},
    {"one row", 1, 30, one_row, 0},
    {"no non-zeros", 19, 5, nothing, 0},
    {"no columns", 9, 0, nothing, 0},
    {"no rows", 0, 5, nothing, 0},
    {"ascending", 21, 900, overlapping, 1},
};

int test_shape_count(void) { return (int)(sizeof shapes / sizeof *shapes); }
const char *test_shape_name(int shape) { return shapes[shape].name; }
int test_column_is_unreferenced(int64_t column) { return column % 7 == 3; }

static void draw_columns(const shape *s, test_random *random, int32_t *colind, int64_t count) {
  int64_t column = (int64_t)test_draw(random, 20);
  for (int64_t p = 0; p < count; p++) {
    column = s->ascending ? column + 1 + (int64_t)test_draw(random, 2) : (int64_t)test_draw(random, (uint64_t)s->cols);
    while (test_column_is_unreferenced(column))
      column = s->ascending ? column + 1 : (int64_t)test_draw(random, (uint64_t)s->cols);
    colind[p] = (int32_t)column;
  }
}

wlm_status test_shape_make(int number, int64_t step, int64_t longest, test_random *random, wlmi_csr_host *out) {
  wlm_status status = WLM_OK;
  const shape *s = &shapes[number];
  *out = (wlmi_csr_host){.rows = s->rows, .cols = s->cols};
  WLM_TRY(wlmi_alloc_array(s->rows + 1, sizeof *out->rowptr, "rowptr", (void **)&out->rowptr));
  out->rowptr[0] = 0;
  for (int64_t row = 0; row < s->rows; row++)
    out->rowptr[row + 1] = out->rowptr[row] + s->degree(row, step, longest, random);
  out->nnz = out->rowptr[s->rows];
  WLM_TRY(wlmi_alloc_array(out->nnz, sizeof *out->colind, "colind", (void **)&out->colind));
  for (int64_t row = 0; row < s->rows; row++)
    draw_columns(s, random, out->colind + out->rowptr[row], out->rowptr[row + 1] - out->rowptr[row]);
done:
  if (status != WLM_OK) wlmi_csr_host_release(out);
  return status;
}
