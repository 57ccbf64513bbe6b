/* Rules are tried from the top: the first one that holds and whose variant is a candidate decides. Families serve
 * different operations, so no rule says for which it is, and the last ones of each operation hold for any N. An
 * operation with one family on a device, such as the gradient on a host, has no rule: of its candidates the one that
 * fits N best is taken (select/by_rule.c).
 *
 * They name what was fastest on an H200, roughly, since models choose better (docs/performance.md), but models do not
 * know kernels that always prepare. tests/db/test_folds.c measures the result. The rules for sampling, for which no
 * model is shipped, are those of 107 matrices with 16 edges, N = 16 to 256; with its vector, the one for N > 128 has no
 * candidate for less.
 *
 * The host rules split the non-zeros evenly where one long row could occupy a thread, and use the widest tile that N
 * fills. Bounds of the longest row lie between the steps to which core/problem/cell.c rounds it.
 *
 * Which vectors are valid depends on type, N and heads. So a rule says how many columns a group of lanes takes at once,
 * "lanes=64/@,vector=@", and @ becomes the longest valid vector: in f32 16 lanes of 4, in f64 or for an even N 32 of 2,
 * and in 16-bit types 16 of 8, twice the columns, as measurements of f16 favour. Rules for 16-bit products are found by
 * half of N (select/by_rule.c). Groups are no wider than N, and for a message with a line for each edge as wide.
 * "tile=#" is the narrowest tile with N columns, or a wider one. */
#include "select/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "select/features.h"

#define ANY     INT64_MAX
#define LONG    "few columns, long rows: the lanes of half a warp share the edges of a row"
#define STAGED  "few columns: a block loads an even share of rows and edges side by side, then folds its rows"
#define SORTED  "many calls, and no huge row: rows sorted by length in the plan"
#define WHOLE   "no long row: a group of lanes a row"
#define SKEWED  "skewed rows: share rows and non-zeros evenly, in larger pieces the more there are"
#define SAMPLED "ES-SpMM: a warp a row, more rows a block where there are few columns"
#define FEW     "ES-SpMM, few rows: two warps a row, so that there are enough"

// clang-format off
const wlmi_rule wlmi_rules[] = {
    {WLMI_TARGET_CUDA, 8, 0, ANY, 2234, 15, 0, .25, "row_fold/lanes=16,vector=@,batch=4", LONG},
    {WLMI_TARGET_CUDA, 8, .2, ANY, 6319, 2, 0, .05, "path_stage/threads=256,vector=@,batch=4,prepared=0", STAGED},
    {WLMI_TARGET_CUDA, 256, 0, 5000000, 3160, 0, 100, 0, "row_sorted/threads=256,lanes=64/@,vector=@,batch=8,share=16", SORTED},
    {WLMI_TARGET_CUDA, ANY, 0, ANY, 70, 0, 0, .5, "row_vec/lanes=64/@,vector=@,batch=4", WHOLE},
    {WLMI_TARGET_CUDA, ANY, 0, 120000, ANY, 0, 0, .2, "merge_path/items=128,lanes=128/@,vector=@,batch=4,prepared=0", SKEWED},
    {WLMI_TARGET_CUDA, ANY, 0, ANY, ANY, 0, 0, .1, "merge_path/items=512,lanes=128/@,vector=@,batch=4,prepared=0", SKEWED},
    {WLMI_TARGET_CUDA, 32, 0, ANY, ANY, 0, 0, 0, "row_sample/threads=32,rows=8,vector=1,batch=8", SAMPLED},
    {WLMI_TARGET_CUDA, 64, 0, 4096, ANY, 0, 0, 0, "row_sample/threads=64,rows=4,vector=1,batch=8", FEW},
    {WLMI_TARGET_CUDA, ANY, 0, 4096, ANY, 0, 0, 0, "row_sample/threads=64,rows=2,vector=4,batch=8", FEW},
    {WLMI_TARGET_CUDA, ANY, 0, ANY, ANY, 0, 0, 0, "row_sample/threads=32,rows=4,vector=@,batch=8", SAMPLED},
    {WLMI_TARGET_CUDA, ANY, 0, ANY, 6, 0, 0, .5, "sddmm_row/lanes=32/@,vector=@,batch=4", "gradient of short rows: all of a row at once, and few lanes for it"},
    {WLMI_TARGET_CUDA, ANY, .8, ANY, ANY, 0, 0, 0, "sddmm_nnz/share=8,lanes=32/@,vector=@,batch=4", "gradient, skewed rows: equal shares of edges for groups of lanes that keep a row of dC"},
    {WLMI_TARGET_CUDA, ANY, 0, ANY, ANY, 0, 0, 0, "sddmm_row/lanes=128/@,vector=@,batch=8", "gradient, even or sampled rows: a group of lanes a row"},
    {WLMI_TARGET_HOST, ANY, 1.5, ANY, ANY, 0, 0, 0, "host_nnz/nonzeros=8192,tile=#", "skewed rows: split the non-zeros evenly"},
    {WLMI_TARGET_HOST, ANY, 0, ANY, ANY, 0, 0, 0, "host_row/rows=128,tile=#", "even rows: a thread takes whole rows"},
};
// clang-format on

enum { LEAST_LANES = 4, MOST_LANES = 32, LEAST_TILE = 16, MOST_TILE = 128, VECTOR_OF_16_BITS = 8 };

/* Lanes for this many columns; if n is smaller, for n rounded up to a power of two. In 16 bits, groups take twice the
 * columns, and two lanes suffice for 16 columns where a group has a whole row; for few columns one does. SDDMMs and
 * samples have none of this. */
static long lanes_for(const wlmi_rule *rule, const wlm_problem *p, long columns, int64_t n, int vector) {
  const int is_product = p->operation != WLM_SDDMM && p->sampling.sample == WLM_SAMPLE_NONE;
  const int has_16_bits = is_product && vector == VECTOR_OF_16_BITS;
  const int has_rows = !strncmp(rule->variant, "row_vec/", 8);
  const long least = is_product && n <= WLMI_NARROW ? 1 : has_16_bits && has_rows ? 2 : LEAST_LANES;
  if (has_16_bits) columns *= 2;
  while (columns > 1 && columns / 2 >= n) columns /= 2;
  const long lanes = columns / vector;
  return lanes < least ? least : lanes > MOST_LANES ? MOST_LANES : lanes;
}

/* The narrowest tile of the host with n columns. */
static long tile_for(int64_t n) {
  long tile = LEAST_TILE;
  while (tile < n && tile < MOST_TILE) tile *= 2;
  return tile;
}

int wlmi_rule_spell(const wlmi_rule *rule, const wlm_problem *problem, int64_t n, int number,
                    char variant[WLMI_VARIANT_NAME]) {
  static const int vectors[] = {VECTOR_OF_16_BITS, 4, 2, 1};
  const int has_vector = strchr(rule->variant, '@') != NULL, has_tile = strchr(rule->variant, '#') != NULL;
  const int spellings = has_vector || has_tile ? (int)(sizeof vectors / sizeof *vectors) : 1;
  const long tile = number < spellings ? tile_for(n) << number : 0;
  size_t size = 0;
  if (number >= spellings || (has_tile && tile > MOST_TILE)) return 0;
  for (const char *at = rule->variant; *at && size + 8 < WLMI_VARIANT_NAME;) {
    char *behind;
    const long columns = strtol(at, &behind, 10);
    if (*at >= '0' && *at <= '9' && !strncmp(behind, "/@", 2)) {
      size += (size_t)snprintf(variant + size, 8, "%ld", lanes_for(rule, problem, columns, n, vectors[number]));
      at = behind + 2;
    } else if (*at == '@') {
      variant[size++] = (char)('0' + vectors[number]);
      at++;
    } else if (*at == '#') {
      size += (size_t)snprintf(variant + size, 8, "%ld", tile);
      at++;
    } else {
      variant[size++] = *at++;
    }
  }
  variant[size] = 0;
  return 1;
}

const int wlmi_rule_count = sizeof wlmi_rules / sizeof *wlmi_rules;
