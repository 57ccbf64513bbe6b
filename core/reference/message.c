/* Walks each row in blocks of columns, as reference.c does: the operands of an edge are read into blocks, each result's
 * expression is evaluated over them, and its reduction takes the message in. Nothing here names an operand. */
#include "core/reference/message.h"

#include <math.h>

#include "core/problem/element.h"
#include "core/problem/operator.h"
#include "core/problem/sampling.h"
#include "core/reference/evaluate.h"

enum { LEAST_BLOCK = 8 }; /* columns, so that a walk over the edges pays */

/* The softmax of one row and block of columns, relative to the largest score so far. */
typedef struct row_weights {
  double base[WLMI_BLOCK], total[WLMI_BLOCK];
  double size[WLMI_BLOCK];   /* the largest size of a score */
  double loose[WLMI_BLOCK];  /* sum of the weights times how much rounding may change them */
  double weight[WLMI_BLOCK]; /* of the current edge */
  double off[WLMI_BLOCK];    /* how much rounding may change it */
  double factor[WLMI_BLOCK]; /* of what was summed before, as the base has moved */
  int count;                 /* how many of these: 1 where all columns of the block belong to one head */
} row_weights;

/* The sums of one row and block of columns. */
typedef struct row_result {
  wlmi_column_block block;
  int64_t position[WLMI_BLOCK];
} row_result;

/* A walk, and its activation; count = 0 where it has none. */
typedef struct bound {
  const wlmi_message_walk *walk;
  wlmi_expression activation;
} bound;

/* What the errors of one result are relative to, besides the sizes that wlmi_evaluate computes. */
typedef struct measure {
  double weight; /* larger for expressions that round often */
  int is_even;   /* the terms of a sum may be equal, and then their errors add up */
} measure;

/* ---- operands ------------------------------------------------------------------------------------------- */

static int64_t place_in_a(const wlmi_message_walk *w, int64_t edge) { return w->order ? w->order[edge] : edge; }

static int64_t line_of(const wlmi_message_walk *w, wlm_place place, int64_t row, int64_t edge) {
  const int64_t column = w->a->colind[edge];
  switch (place) {
    case WLM_PLACE_ROW: return w->problem->transpose ? column : row;
    case WLM_PLACE_COLUMN: return w->problem->transpose ? row : column;
    case WLM_PLACE_EDGE: return place_in_a(w, edge);
    case WLM_PLACE_ALL: break;
  }
  return 0;
}

/* The element of a line that column j reads. */
static int64_t element_of(const wlm_problem *p, wlm_width width, int64_t j) {
  const int64_t head = j / (p->n / p->heads);
  if (wlmi_width_is_pair(width)) return 2 * head + (width == WLM_WIDTH_SCALE);
  return width == WLM_WIDTH_HEADS ? head : width == WLM_WIDTH_ONE ? 0 : j;
}

/* `count` neighbouring columns of an operand from column `first` on. */
static void read_operand(const wlmi_message_walk *w, int i, int64_t row, int64_t edge, wlmi_columns c, double *to) {
  const wlmi_message_operand *o = &w->message->operand[i];
  const wlm_problem *p = w->problem;
  const int64_t line = line_of(w, o->place, row, edge), heads = p->heads;
  const int64_t ld = w->call->operand_ld[i] ? w->call->operand_ld[i] : wlmi_width_columns(p, o->width);
  const int64_t *rowptr = w->rowptr ? w->rowptr : w->a->rowptr;
  const wlm_type type = wlmi_width_is_pair(o->width) ? wlmi_accumulator_type(p->dense_type) : p->dense_type;
  const void *memory = w->call->operands[i];
  if (o->source == WLMI_SOURCE_MEMORY && o->width == WLM_WIDTH_N) {
    wlmi_elements_read(type, memory, line * ld + c.first, c.count, to);
    return;
  }
  for (int j = 0; j < c.count; j++) {
    const int64_t element = element_of(p, o->width, c.first + j);
    switch (o->source) {
      case WLMI_SOURCE_NUMBER: to[j] = w->call->scalars[i]; break;
      case WLMI_SOURCE_DEGREE: to[j] = (double)(rowptr[line + 1] - rowptr[line]); break;
      case WLMI_SOURCE_VALUES: to[j] = wlmi_csr_value(w->a, edge * heads + element); break;
      case WLMI_SOURCE_KEPT: to[j] = wlmi_dropout_factor(w->call->scalars[i], w->seed, line * heads + element); break;
      case WLMI_SOURCE_MEMORY:
        to[j] = o->width == WLM_WIDTH_WINS
                    ? wlmi_index_get(p->argmax_type, memory, line * ld + element) == place_in_a(w, edge)
                    : wlmi_element_get(type, memory, line * ld + element);
    }
  }
}

/* A block ends where its head does, unless heads are narrow. */
static int block_at(const wlm_problem *p, int64_t first) {
  const int64_t width = p->n / p->heads, end = width < LEAST_BLOCK ? p->n : first - first % width + width;
  const int64_t left = first < p->n ? end - first : 0;
  return (int)(left < WLMI_BLOCK ? left : WLMI_BLOCK);
}

static int is_in_one_head(const wlmi_message_walk *w, wlmi_columns c) {
  const int64_t width = w->problem->n / w->problem->heads;
  return c.first / width == (c.first + c.count - 1) / width;
}

/* The operands and sums that are the same in all columns of a block. */
static unsigned int common_of(const wlmi_message_walk *w, wlmi_columns c) {
  unsigned int common = 0;
  if (!is_in_one_head(w, c)) return common;
  for (int i = 0; i < w->message->operands; i++) {
    const wlm_width width = w->message->operand[i].width;
    if (width != WLM_WIDTH_N && width != WLM_WIDTH_WINS) common |= 1u << i;
  }
  return common | ((1u << w->message->sums) - 1) << w->message->operands;
}

static void load_operands(const wlmi_message_walk *w, int64_t row, int64_t edge, wlmi_columns c, unsigned int common,
                          wlmi_column_block *blocks) {
  for (int i = 0; i < w->message->operands; i++) {
    const wlmi_columns read = {c.first, common >> i & 1 ? 1 : c.count};
    double *const value = blocks[i].value;
    read_operand(w, i, row, edge, read, value);
    for (int j = 0; j < read.count; j++) blocks[i].size[j] = isinf(value[j]) ? 0.0 : fabs(value[j]); /* it is exact */
  }
}

/* Sum `s` of a head; `sums` has the value and the size of it and of each sum before it. Its terms round, too, and their
 * errors add up. */
static void sum_head(const wlmi_message_walk *w, int s, int64_t row, int64_t edge, int64_t head, double step,
                     double *sums) {
  const int64_t width = w->problem->n / w->problem->heads;
  const wlmi_message *m = w->message;
  double *value = &sums[2 * s], *size = &sums[2 * s + 1];
  wlmi_column_block blocks[WLMI_MAX_NAMES], terms;
  const wlmi_column_block *operands[WLMI_MAX_NAMES];
  for (int i = 0; i < WLMI_MAX_NAMES; i++) operands[i] = &blocks[i];
  *value = *size = 0;
  for (int64_t first = 0; first < width; first += WLMI_BLOCK) {
    const wlmi_columns c = {head * width + first, (int)(width - first < WLMI_BLOCK ? width - first : WLMI_BLOCK)};
    load_operands(w, row, edge, c, common_of(w, c), blocks);
    for (int i = 0; i < s; i++) {
      blocks[m->operands + i].value[0] = sums[2 * i];
      blocks[m->operands + i].size[0] = sums[2 * i + 1];
    }
    wlmi_evaluate(&m->sum[s], operands, common_of(w, c), c.count, step, &terms);
    for (int j = 0; j < c.count; j++) *value += terms.value[j], *size += terms.size[j];
  }
  *size *= 1 + sqrt((double)width) / 4 + wlmi_expression_roundings(&m->sum[s]) / 8.0;
}

/* The operands of an edge, and the sums over the columns of each head. */
static void load(const wlmi_message_walk *w, int64_t row, int64_t edge, wlmi_columns c, double step,
                 wlmi_column_block *blocks) {
  const int64_t width = w->problem->n / w->problem->heads;
  const wlmi_message *m = w->message;
  double made[2 * WLMI_MAX_SUMS] = {0};
  load_operands(w, row, edge, c, common_of(w, c), blocks);
  for (int j = 0; j < c.count && m->sums; j++) {
    const int64_t head = (c.first + j) / width;
    for (int s = 0; s < m->sums; s++) {
      if (j == 0 || (c.first + j) % width == 0) sum_head(w, s, row, edge, head, step, made);
      blocks[m->operands + s].value[j] = made[2 * s];
      blocks[m->operands + s].size[j] = made[2 * s + 1];
    }
  }
}

/* ---- errors --------------------------------------------------------------------------------------------- */

/* How often a sample takes an edge, and what it counts each time. */
static wlmi_edge_share share_of(const wlmi_message_walk *w, int64_t edge) {
  return w->a->shares ? w->a->shares[edge] : (wlmi_edge_share){1, 1};
}

static int64_t edges_of(const wlmi_message_walk *w, int64_t row) {
  int64_t edges = 0;
  for (int64_t edge = w->a->rowptr[row]; edge < w->a->rowptr[row + 1]; edge++) edges += share_of(w, edge).times;
  return edges;
}

/* How many terms an element of the result sums, of a row that has `edges`. */
static int64_t terms_of(const wlmi_message_walk *w, wlmi_result_kind kind, int64_t edges) {
  if (wlmi_result_is_of_row(kind)) return edges;
  return kind == WLMI_RESULT_EDGE_SUM ? w->problem->n / w->problem->heads : 1;
}

/* The relative error that the accumulator may have (tuner/verify.c gives the reason). */
static double step_of(const wlmi_message_walk *w, int64_t terms) {
  const int repeats = w->problem->sampling.sample == WLM_SAMPLE_FASTRAND; /* terms may all be the same one */
  return wlmi_element_unit(wlmi_accumulator_type(w->problem->dense_type)) *
         (8 + (repeats ? (double)terms : 2 * sqrt((double)terms)));
}

/* Whether the operand is random and differs between the terms of such a result. */
static int varies(const wlmi_message_walk *w, wlmi_result_kind kind, const wlmi_message_operand *o) {
  const wlm_place looked_up = w->problem->transpose ? WLM_PLACE_ROW : WLM_PLACE_COLUMN;
  if (o->source != WLMI_SOURCE_MEMORY || o->width >= WLM_WIDTH_WINS) return 0;
  return kind == WLMI_RESULT_EDGE_SUM ? o->width == WLM_WIDTH_N : o->place == WLM_PLACE_EDGE || o->place == looked_up;
}

/* As for user-defined operators: the tolerance covers a few roundings of each message, and grows by as much again for
 * every eight further ones. A product multiplies messages, so each of their roundings counts in full. */
static measure measure_of(const wlmi_message_walk *w, int r) {
  const wlmi_message_result *result = &w->message->result[r];
  const int roundings = wlmi_expression_roundings(&result->value), further = roundings > 1 ? roundings - 1 : 0;
  measure m = {1 + (result->kind == WLMI_RESULT_PROD ? further : further / 8.0), result->kind != WLMI_RESULT_EDGE};
  for (int i = 0; i < w->message->operands; i++)
    if (wlmi_expression_uses(&result->value, i) && varies(w, result->kind, &w->message->operand[i])) m.is_even = 0;
  return m;
}

static double factor_of(const measure *m, int64_t terms) {
  return m->weight * (m->is_even && terms > 1 ? sqrt((double)terms) : 1);
}

/* ---- results of rows ------------------------------------------------------------------------------------ */

static void begin_row(wlmi_result_kind kind, int count, row_result *row) {
  for (int j = 0; j < count; j++) {
    row->block.value[j] = kind == WLMI_RESULT_PROD ? 1 : 0;
    row->block.size[j] = 0;
    row->position[j] = -1;
  }
}

/* Takes in an edge's score, `times` times. A weight is as wrong as its exponent, whose parts round. */
static void weigh(const wlmi_column_block *score, double times, row_weights *row) {
  for (int j = 0; j < row->count; j++) {
    const double x = score->value[j], base = x > row->base[j] ? x : row->base[j];
    row->factor[j] = row->base[j] == base ? 1 : exp(row->base[j] - base);
    row->base[j] = base;
    if (isfinite(x)) row->size[j] = fmax(row->size[j], score->size[j]);
    row->weight[j] = isinf(base) && base < 0 ? (isnan(x) ? NAN : 0) : times * exp(x - base);
    row->off[j] = isfinite(x) ? 4 + 2 * score->size[j] + fabs(base) : 4;
    row->total[j] = row->total[j] * row->factor[j] + row->weight[j];
    row->loose[j] = row->loose[j] * row->factor[j] + row->weight[j] * row->off[j];
  }
}

static void take_weighted(const row_weights *weights, const wlmi_column_block *message, int count, row_result *row) {
  for (int j = 0; j < count; j++) {
    const int k = weights->count == 1 ? 0 : j;
    const double weight = weights->weight[k], x = weight * message->value[j];
    row->block.value[j] = row->block.value[j] * weights->factor[k] + x;
    row->block.size[j] = row->block.size[j] * weights->factor[k] + weight * message->size[j] +
                         (isfinite(x) ? fabs(x) * weights->off[k] : 0);
  }
}

/* The size of a product follows from its derivatives: that of each message counts times all others. */
static void take(wlmi_result_kind kind, const wlmi_column_block *message, int64_t position, int count,
                 row_result *row) {
  for (int j = 0; j < count; j++) {
    const double x = message->value[j], size = message->size[j];
    double *value = &row->block.value[j], *sum = &row->block.size[j];
    if (wlmi_result_is_extreme(kind)) {
      *sum = fmax(*sum, size);
      if (!wlmi_wins(kind == WLMI_RESULT_MAX, x, position, *value, row->position[j])) continue;
      *value = x;
      row->position[j] = position;
    } else if (kind == WLMI_RESULT_PROD) {
      *sum = row->position[j] < 0 ? size : *sum * fabs(x) + fabs(*value) * size;
      *value *= x;
      row->position[j] = position;
    } else {
      *value += x;
      *sum += size;
    }
  }
}

/* The epilogue. An activation rounds as the expressions of messages do. */
static void close_row(const bound *b, int64_t degree, wlmi_columns c, wlmi_column_block *block) {
  const wlmi_message_walk *w = b->walk;
  const wlmi_column_block *const operands[WLMI_OPERANDS] = {[WLMI_OPERAND_X] = block};
  for (int j = 0; w->problem->epilogue.bias && j < c.count; j++) {
    const double bias = wlmi_element_get(w->problem->dense_type, w->bias, c.first + j);
    block->value[j] += bias;
    block->size[j] += fabs(bias);
  }
  if (!b->activation.count) return;
  wlmi_evaluate(&b->activation, operands, 0, c.count, step_of(w, degree), block);
  for (int j = 0; j < c.count; j++) block->size[j] *= 1 + wlmi_expression_roundings(&b->activation) / 8.0;
}

/* Divides by the sum of the weights. */
static void share(const row_weights *weights, int count, wlmi_column_block *block) {
  for (int j = 0; j < count; j++) {
    const int k = weights->count == 1 ? 0 : j;
    const double total = weights->total[k], looser = weights->loose[k] / total;
    block->value[j] = total == 0 ? 0 : block->value[j] / total;
    block->size[j] = total == 0 ? 0 : (1 + looser / 4) * block->size[j] / total;
  }
}

static void put_softmax(const bound *b, int64_t i, wlmi_columns c, const row_weights *weights,
                        const wlmi_reference_result *to) {
  const int64_t heads = b->walk->problem->heads, width = b->walk->problem->n / heads;
  for (int j = 0; j < c.count; j++) {
    const int64_t at = 2 * (i * heads + (c.first + j) / width);
    if ((c.first + j) % width) continue;
    const int is_none = weights->total[j] == 0;
    to->value[at] = is_none ? 0 : weights->base[j];
    to->value[at + 1] = is_none ? 0 : 1 / weights->total[j];
    if (!to->scale) continue;
    to->scale[at] = is_none ? 0 : weights->size[j];
    to->scale[at + 1] = is_none ? 0 : weights->loose[j] / weights->total[j] / weights->total[j];
  }
}

static void end_row(const bound *b, int r, int64_t i, int64_t degree, wlmi_columns c, double factor, row_result *row,
                    const wlmi_reference_result *to) {
  const wlmi_message_walk *w = b->walk;
  const int is_mean = w->message->result[r].kind == WLMI_RESULT_MEAN && degree;
  const double divisor = is_mean ? (double)degree : 1;
  const int64_t at = i * w->problem->n + c.first;
  for (int j = 0; j < c.count; j++) row->block.value[j] /= divisor, row->block.size[j] *= factor / divisor;
  close_row(b, degree, c, &row->block);
  for (int j = 0; j < c.count; j++) {
    to->value[at + j] = row->block.value[j];
    if (to->scale) to->scale[at + j] = row->block.size[j];
    if (to->positions) to->positions[at + j] = row->position[j];
  }
}

/* ---- results of edges ----------------------------------------------------------------------------------- */

static void put_edge(const wlmi_message_walk *w, wlmi_result_kind kind, int64_t line, wlmi_columns c, double factor,
                     const wlmi_column_block *message, const wlmi_reference_result *to) {
  const wlm_problem *p = w->problem;
  const int64_t head_width = p->n / p->heads;
  for (int j = 0; j < c.count; j++) {
    const int64_t column = c.first + j;
    const int is_sum = kind == WLMI_RESULT_EDGE_SUM;
    const int64_t at = is_sum ? line * p->heads + column / head_width : line * p->n + column;
    const int begins = !is_sum || column % head_width == 0;
    to->value[at] = (begins ? 0 : to->value[at]) + message->value[j];
    if (to->scale) to->scale[at] = (begins ? 0 : to->scale[at]) + factor * message->size[j];
  }
}

/* ---- the walk ------------------------------------------------------------------------------------------- */

typedef struct walked_row {
  int64_t i, row; /* its place among the named rows, and its number */
  int64_t line;   /* of its first edge in edge results; -1 = left out */
} walked_row;

/* Multiplies a message by what its edge counts; 0 times NaN is 0. */
static void scale(double by, int count, wlmi_column_block *message) {
  for (int j = 0; j < count && by != 1; j++) {
    message->value[j] = by == 0 ? 0 : by * message->value[j];
    message->size[j] = by == 0 ? 0 : by * message->size[j];
  }
}

static void walk_block(const bound *b, const walked_row *at, wlmi_columns c, const measure *measures,
                       const wlmi_reference_result *to) {
  const wlmi_message_walk *w = b->walk;
  const wlmi_message *m = w->message;
  const int64_t begin = w->a->rowptr[at->row], degree = w->a->rowptr[at->row + 1] - begin, kept = edges_of(w, at->row);
  const double row_step = step_of(w, kept);
  wlmi_column_block blocks[WLMI_MAX_NAMES], message;
  const wlmi_column_block *operands[WLMI_MAX_NAMES];
  row_result rows[WLM_MAX_RESULTS];
  const unsigned int common = common_of(w, c);
  row_weights weights = {.size = {0}, .count = is_in_one_head(w, c) ? 1 : c.count};
  for (int j = 0; j < weights.count; j++) weights.base[j] = -INFINITY;
  for (int i = 0; i < WLMI_MAX_NAMES; i++) operands[i] = &blocks[i];
  for (int r = 0; r < m->results; r++) begin_row(m->result[r].kind, c.count, &rows[r]);
  for (int64_t k = 0; k < degree; k++) {
    const int64_t edge = begin + k;
    const wlmi_edge_share share = share_of(w, edge);
    if (!share.times && at->line < 0) continue;
    load(w, at->row, edge, c, row_step, blocks);
    for (int r = 0; r < m->results; r++) {
      const wlmi_result_kind kind = m->result[r].kind;
      const int64_t terms = terms_of(w, kind, kept);
      const int of_row = wlmi_result_is_of_row(kind);
      if (kind != WLMI_RESULT_SCORE && (!to[r].value || (!of_row && at->line < 0))) continue;
      wlmi_evaluate(&m->result[r].value, operands, common, c.count, step_of(w, terms), &message);
      if (kind == WLMI_RESULT_SCORE) {
        if (share.times) weigh(&message, (double)share.times, &weights);
        continue;
      }
      if (kind == WLMI_RESULT_SOFTMAX) {
        if (share.times) take_weighted(&weights, &message, c.count, &rows[r]);
        continue;
      }
      scale(of_row ? share.factor : share.factor * (double)share.times, c.count, &message);
      for (int64_t times = 0; of_row && times < share.times; times++)
        take(kind, &message, place_in_a(w, edge), c.count, &rows[r]);
      if (!of_row) put_edge(w, kind, at->line + k, c, factor_of(&measures[r], terms), &message, &to[r]);
    }
  }
  for (int r = 0; r < m->results; r++) {
    const wlmi_result_kind kind = m->result[r].kind;
    if (!to[r].value || !wlmi_result_is_of_row(kind)) continue;
    if (kind == WLMI_RESULT_SOFTMAX) share(&weights, c.count, &rows[r].block);
    if (kind == WLMI_RESULT_SCORE)
      put_softmax(b, at->i, c, &weights, &to[r]);
    else
      end_row(b, r, at->i, kept, c, factor_of(&measures[r], kept), &rows[r], &to[r]);
  }
}

wlm_status wlmi_reference_message(const wlmi_message_walk *walk, const int64_t *row_ids, int64_t row_count,
                                  const int64_t *edge_first, const wlmi_reference_result *results) {
  const char *const activation = walk->problem->epilogue.activation;
  measure measures[WLM_MAX_RESULTS];
  bound b = {walk, {0}};
  if (activation) WLM_CHECK(wlmi_activation_parse(activation, &b.activation));
  for (int r = 0; r < walk->message->results; r++) measures[r] = measure_of(walk, r);
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t i = 0; i < row_count; i++) {
    const int has_edges = edge_first && edge_first[i + 1] > edge_first[i];
    const walked_row row = {i, row_ids ? row_ids[i] : i, has_edges ? edge_first[i] : -1};
    for (wlmi_columns c = {0, 0}; (c.count = block_at(walk->problem, c.first)) > 0; c.first += c.count)
      walk_block(&b, &row, c, measures, results);
  }
  wlmi_expression_release(&b.activation);
  return WLM_OK;
}

void wlmi_reference_message_at(const wlmi_message_walk *walk, int result, int64_t row, int64_t edge, int64_t column,
                               double *value, double *size) {
  const wlmi_message_result *of = &walk->message->result[result];
  const measure m = measure_of(walk, result);
  const double step = step_of(walk, terms_of(walk, of->kind, edges_of(walk, row)));
  wlmi_column_block blocks[WLMI_MAX_NAMES], message;
  const wlmi_column_block *operands[WLMI_MAX_NAMES];
  for (int i = 0; i < WLMI_MAX_NAMES; i++) operands[i] = &blocks[i];
  load(walk, row, edge, (wlmi_columns){column, 1}, step, blocks);
  wlmi_evaluate(&of->value, operands, 0, 1, step, &message);
  *value = message.value[0];
  *size = m.weight * message.size[0];
}
