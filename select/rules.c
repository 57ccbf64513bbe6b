/* Rules are tried from the top: the first one that holds and whose variant is valid decides, so every group ends with
 * rules for any N. The CUDA rules name what was fastest on an H200, in the geometric mean over the matrices that the
 * rule covers:
 *
 * - products with up to two million non-zeros: 69 real matrices (docs/performance.md names them) and 38 of the tuner's
 *   design in f32 with N = 1 to 256, and 37 of the real ones and the design in f16 with N = 32 to 256. A decision tree,
 *   as tools/fit_rules finds it, was simplified by hand. The longest row decides first: where it is short, its lanes
 *   end in time, however much the rows vary. Kernels that give a row to one group of lanes need a bound of it.
 * - larger products: 33 matrices of suite core and the design; the rules of N <= 8 come from such a tree, too.
 * - messages with a line for each edge: `relu(b+e)` on 106 of these matrices with N = 64, and where a row is huge on
 *   nine with N = 32 to 256. Others follow the rules of products, and these where none of those is valid.
 * - the SDDMM: 106 of them with N = 32 to 128, those of suite operators with N = 256, and for short rows nine more,
 *   with 2 or 4 edges a row.
 * - sampling: 107 matrices with 16 edges, N = 16 to 256; the number of rows decides.
 * - prepared variants, for a number of calls, which a plan of fewer calls never gets: 1,000 calls on the matrices of
 *   products, those for 16-bit types (WLMI_RULE_HALVES) on those in f16.
 *
 * The host rules split the non-zeros evenly where one long row could occupy a thread, and use the widest tile that N
 * fills. Bounds of the longest row lie between the steps to which core/problem/cell.c rounds it.
 *
 * Which vectors are valid depends on type, N and heads. So a rule says how many columns a group of lanes takes at once,
 * "lanes=64/@,vector=@", and @ becomes the longest valid vector: in f32 16 lanes of 4, in f64 or for an even N 32 of 2,
 * and in 16-bit types 16 of 8, twice the columns, as measurements of f16 favour. Rules for 16-bit products are found by
 * half of N (select/by_rule.c). Groups are no wider than N, so that a rule for 16 columns is needed only where it
 * differs from that for more. "tile=#" is the narrowest tile with N columns, or a wider one. */
#include "select/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "select/features.h"

#define ANY            INT64_MAX
#define SKEWED         "skewed rows: share rows and non-zeros evenly, in larger pieces the more there are"
#define HUGE_ROW       "a huge row among few edges: larger pieces, so that fewer sums of that row are added at the end"
#define WHOLE          "no long row: a group of lanes a row"
#define SHARED         "no long row: a block a few rows, one after the other for each group of lanes"
#define TINY           "so small that a second launch would cost more than it brings"
#define MANY           "many short even rows: large pieces, so that few blocks start"
#define FEW            "long even rows, too few to keep the device busy one by one"
#define LONG           "long even rows: more non-zeros in flight for each group of lanes"
#define NARROW         "few columns: the lanes of a warp share the edges of a row"
#define STAGED         "few columns: a block loads its edges side by side, then lanes fold its rows"
#define PATH_STAGED    "few columns, skewed rows: equal shares of rows and edges for the blocks, whose lanes fold rows"
#define EVEN           "even rows: a group of lanes a row"
#define SORTED         "many calls, and no huge row: rows sorted by length in the plan"
#define SAMPLED_WARP   "ES-SpMM: a warp a row, vectors carry N"
#define SAMPLED_NARROW "ES-SpMM, few columns: a warp a row, more rows a block"
#define SAMPLED_FEW    "ES-SpMM, few rows: two warps a row, so that there are enough"
#define KEPT           "transpose of a sampled matrix: look up which edges its rows kept"
#define GRADIENT       "gradient of skewed rows: equal shares of edges for groups of lanes that keep a row of dC"
#define GRADIENT_SHORT "gradient of rows of at most 6 edges: all of a row at once, and few lanes for it"
#define GRADIENT_TINY  "gradient of few edges: small shares, so that there are groups enough"
#define GRADIENT_EVEN  "gradient, no long row: a group of lanes a row"
#define GRADIENT_ROWS  "gradient of a sampled product: a group of lanes a row"
#define MESSAGE_TINY   "so small that a second launch would cost more than it brings; a group of lanes has a whole row"
#define MESSAGE_SKEWED "skewed rows: share rows and non-zeros evenly; a group of lanes has a whole row"
#define MESSAGE_WHOLE  "no long row: a group of lanes has a whole row"
#define HOST_SKEWED    "skewed rows: split the non-zeros evenly"
#define HOST_EVEN      "even rows: a thread takes whole rows"

// clang-format off
const wlmi_rule wlmi_rules[] = {
    {WLMI_TARGET_CUDA, 0, 8, 0, 200000, 1117, "row_fold/lanes=32,vector=@,batch=4", NARROW, 0, 60},
    {WLMI_TARGET_CUDA, 0, 8, 0, 200000, 1117, "row_fold/lanes=32,vector=@,batch=2", NARROW, 0, 15},
    {WLMI_TARGET_CUDA, 0, 8, 0, 2000000, 1117, "row_fold/lanes=32,vector=@,batch=2", NARROW, 0, 60},
    {WLMI_TARGET_CUDA, 0, 8, 0, 2000000, 1117, "row_fold/lanes=16,vector=@,batch=2", NARROW, 0, 15},
    {WLMI_TARGET_CUDA, 0, 4, 0, 100000, 12, "row_fold/lanes=4,vector=@,batch=2", NARROW, 0, 0},
    {WLMI_TARGET_CUDA, 0, 8, 0, 100000, 12, "row_fold/lanes=8,vector=@,batch=1", NARROW, 0, 0},
    {WLMI_TARGET_CUDA, 0, 8, 0, 2000000, 12, "row_vec/lanes=8/@,vector=@,batch=4", WHOLE, 0, 0},
    {WLMI_TARGET_CUDA, 0, 8, 0, 30000, 99, "row_fold/lanes=16,vector=@,batch=4", NARROW, 0, 0},
    {WLMI_TARGET_CUDA, 0, 8, 0, 30000, 1117, "row_fold/lanes=32,vector=@,batch=4", NARROW, 0, 0},
    {WLMI_TARGET_CUDA, 0, 8, 0, 100000, 35, "row_fold/lanes=8,vector=@,batch=2", NARROW, 0, 3},
    {WLMI_TARGET_CUDA, 0, 8, 0, 2000000, 35, "row_fold/lanes=4,vector=@,batch=4", NARROW, 0, 3},
    {WLMI_TARGET_CUDA, 0, 1, 3.0, 2000000, 1117, "row_stage/threads=128,lanes=16,vector=@,batch=8", STAGED, 0, 3},
    {WLMI_TARGET_CUDA, 0, 8, 3.0, 2000000, 1117, "row_fold/lanes=32,vector=@,batch=2", NARROW, 0, 3},
    {WLMI_TARGET_CUDA, 0, 4, 1.0, 2000000, 1117, "row_stage/threads=256,lanes=8,vector=@,batch=4", STAGED, 0, 3},
    {WLMI_TARGET_CUDA, 0, 8, 1.0, 2000000, 1117, "row_fold/lanes=16,vector=@,batch=1", NARROW, 0, 3},
    {WLMI_TARGET_CUDA, 0, 8, 0, 2000000, 1117, "row_stage/threads=128,lanes=4,vector=@,batch=4", STAGED, 0, 3},
    {WLMI_TARGET_CUDA, 0, 8, 0, 2000000, 1117, "row_stage/threads=128,lanes=2,vector=@,batch=4", STAGED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 4, 0, 120000, 4468, "path_stage/threads=256,vector=@,batch=8,prepared=0", PATH_STAGED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 8, 0, 5000, ANY, "row_fold/lanes=32,vector=@,batch=4", NARROW, 0, 0},
    {WLMI_TARGET_CUDA, 0, 8, 0, 120000, ANY, "merge_path/items=512,lanes=8/@,vector=@,batch=8,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 2, 0, 2000000, 4468, "row_stage/threads=256,lanes=16,vector=@,batch=8", STAGED, 0, 30},
    {WLMI_TARGET_CUDA, 0, 2, 0, 2000000, 4468, "path_stage/threads=256,vector=@,batch=8,prepared=0", PATH_STAGED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 8, 0, 2000000, ANY, "merge_path/items=1024,lanes=8/@,vector=@,batch=4,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 8, 3.0, ANY, ANY, "merge_path/items=2048,lanes=8/@,vector=@,batch=4,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 8, 0, ANY, 8936, "row_fold/lanes=32,vector=@,batch=4", NARROW, 0, 250},
    {WLMI_TARGET_CUDA, 0, 2, 0, ANY, 58, "row_stage/threads=128,lanes=1,vector=@,batch=4", STAGED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 8, 0, ANY, 58, "row_vec/lanes=8/@,vector=@,batch=4", WHOLE, 0, 0},
    {WLMI_TARGET_CUDA, 0, 2, 0, ANY, 939, "row_stage/threads=128,lanes=16,vector=@,batch=8", STAGED, 0, 60},
    {WLMI_TARGET_CUDA, 0, 8, 0, ANY, 939, "row_fold/lanes=16,vector=@,batch=1", NARROW, 0, 60},
    {WLMI_TARGET_CUDA, 0, 2, 0, ANY, 939, "row_stage/threads=128,lanes=1,vector=@,batch=8", STAGED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 8, 0, ANY, 939, "merge_path/items=2048,lanes=8/@,vector=@,batch=4,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 4, 0, ANY, ANY, "path_stage/threads=128,vector=@,batch=8,prepared=0", PATH_STAGED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 8, 0, ANY, ANY, "merge_path/items=1024,lanes=8/@,vector=@,batch=4,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 128, 0, 10000, ANY, "row_sorted/threads=128,lanes=32/@,vector=@,batch=16,share=16", SORTED, 100, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 32, 0, 80000, 279, "row_sorted/threads=128,lanes=32/@,vector=@,batch=16,share=16", SORTED, 100, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 128, 0, 80000, 279, "row_sorted/threads=128,lanes=64/@,vector=@,batch=4,share=16", SORTED, 100, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 128, 0, 80000, ANY, "row_sorted/threads=128,lanes=32/@,vector=@,batch=16,share=32", SORTED, 100, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 32, 0, 250000, ANY, "row_sorted/threads=128,lanes=32/@,vector=@,batch=16,share=16", SORTED, 100, 15},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 128, 0, 250000, ANY, "row_sorted/threads=256,lanes=64/@,vector=@,batch=8,share=32", SORTED, 100, 15},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 16, 0, 5000000, ANY, "row_sorted/threads=128,lanes=16/@,vector=@,batch=16,share=32", SORTED, 100, 15},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 128, 0, 5000000, ANY, "row_sorted/threads=128,lanes=32/@,vector=@,batch=16,share=128", SORTED, 100, 15},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 32, 0, 200000, ANY, "row_sorted/threads=128,lanes=32/@,vector=@,batch=4,share=16", SORTED, 100, 4},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 128, 0, 200000, ANY, "row_sorted/threads=128,lanes=64/@,vector=@,batch=4,share=32", SORTED, 100, 4},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 16, 0, 5000000, ANY, "row_sorted/threads=256,lanes=16/@,vector=@,batch=4,share=16", SORTED, 100, 4},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 32, 0, 5000000, ANY, "row_sorted/threads=256,lanes=32/@,vector=@,batch=4,share=32", SORTED, 100, 4},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 128, 0, 5000000, ANY, "row_sorted/threads=256,lanes=64/@,vector=@,batch=4,share=128", SORTED, 100, 4},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 32, 1.0, 5000000, ANY, "row_sorted/threads=128,lanes=32/@,vector=@,batch=4,share=32", SORTED, 100, 2},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 64, 1.0, 5000000, ANY, "row_sorted/threads=256,lanes=64/@,vector=@,batch=4,share=128", SORTED, 100, 2},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 64, 0.7, ANY, ANY, "row_sorted/threads=128,lanes=64/@,vector=@,batch=16,share=128", SORTED, 100, 30},
    {WLMI_TARGET_CUDA, WLMI_RULE_HALVES, 128, 0.7, ANY, ANY, "row_sorted/threads=128,lanes=64/@,vector=@,batch=16,share=256", SORTED, 100, 30},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 50000, 235, "row_sorted/threads=128,lanes=64/@,vector=@,batch=16,share=16", SORTED, 100, 6},
    {WLMI_TARGET_CUDA, 0, 64, 0, 50000, 235, "row_sorted/threads=128,lanes=64/@,vector=@,batch=16,share=16", SORTED, 100, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 50000, 235, "row_sorted/threads=256,lanes=64/@,vector=@,batch=4,share=16", SORTED, 100, 0},
    {WLMI_TARGET_CUDA, 0, 128, 0, 50000, ANY, "row_sorted/threads=128,lanes=32/@,vector=@,batch=16,share=32", SORTED, 100, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 50000, ANY, "row_sorted/threads=256,lanes=64/@,vector=@,batch=4,share=32", SORTED, 100, 0},
    {WLMI_TARGET_CUDA, 0, 32, 0, 200000, ANY, "row_sorted/threads=128,lanes=32/@,vector=@,batch=16,share=16", SORTED, 100, 9},
    {WLMI_TARGET_CUDA, 0, 64, 0, 200000, ANY, "row_sorted/threads=128,lanes=64/@,vector=@,batch=16,share=32", SORTED, 100, 9},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 200000, ANY, "row_sorted/threads=256,lanes=64/@,vector=@,batch=4,share=32", SORTED, 100, 9},
    {WLMI_TARGET_CUDA, 0, 32, 0, 200000, ANY, "row_sorted/threads=256,lanes=32/@,vector=@,batch=8,share=16", SORTED, 100, 0},
    {WLMI_TARGET_CUDA, 0, 128, 0, 200000, ANY, "row_sorted/threads=256,lanes=64/@,vector=@,batch=4,share=32", SORTED, 100, 0},
    {WLMI_TARGET_CUDA, 0, 32, 2.0, 5000000, 3160, "row_sorted/threads=256,lanes=32/@,vector=@,batch=4,share=32", SORTED, 100, 0},
    {WLMI_TARGET_CUDA, 0, 32, 0, 5000000, 3160, "row_sorted/threads=256,lanes=32/@,vector=@,batch=8,share=32", SORTED, 100, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 5000000, 3160, "row_sorted/threads=128,lanes=64/@,vector=@,batch=16,share=128", SORTED, 100, 15},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 5000000, 939, "row_sorted/threads=128,lanes=64/@,vector=@,batch=4,share=128", SORTED, 100, 0},
    {WLMI_TARGET_CUDA, 0, 32, 0.7, ANY, ANY, "row_sorted/threads=128,lanes=32/@,vector=@,batch=16,share=128", SORTED, 100, 30},
    {WLMI_TARGET_CUDA, 0, 64, 0.7, ANY, ANY, "row_sorted/threads=256,lanes=64/@,vector=@,batch=8,share=128", SORTED, 100, 60},
    {WLMI_TARGET_CUDA, 0, 256, 0.7, ANY, ANY, "row_sorted/threads=128,lanes=64/@,vector=@,batch=16,share=256", SORTED, 100, 60},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 100000, 6, "row_vec/lanes=64/@,vector=@,batch=4", WHOLE, 0, 0},
    {WLMI_TARGET_CUDA, 0, 32, 0, 2000000, 6, "row_vec/lanes=32/@,vector=@,batch=4", WHOLE, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 2000000, 6, "row_block/threads=128,rows=64,lanes=128/@,vector=@,batch=4", SHARED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 64, 0, 50000, 70, "row_block/threads=256,rows=4,lanes=64/@,vector=@,batch=4", SHARED, 0, 30},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 50000, 70, "row_vec/lanes=128/@,vector=@,batch=16", WHOLE, 0, 30},
    {WLMI_TARGET_CUDA, 0, 16, 0, 2000000, 70, "row_block/threads=256,rows=16,lanes=16/@,vector=@,batch=4", SHARED, 0, 30},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 2000000, 70, "row_vec/lanes=64/@,vector=@,batch=16", WHOLE, 0, 30},
    {WLMI_TARGET_CUDA, 0, 32, 0, 150000, 70, "row_vec/lanes=32/@,vector=@,batch=16", WHOLE, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 150000, 70, "row_vec/lanes=128/@,vector=@,batch=8", WHOLE, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 2000000, 70, "row_vec/lanes=64/@,vector=@,batch=8", WHOLE, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 120000, 99, "row_block/threads=256,rows=4,lanes=128/@,vector=@,batch=4", SHARED, 0, 6},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 120000, 99, "row_block/threads=256,rows=16,lanes=128/@,vector=@,batch=4", SHARED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 16, 0, 50000, 332, "row_block/threads=128,rows=16,lanes=16/@,vector=@,batch=8", TINY, 0, 0},
    {WLMI_TARGET_CUDA, 0, 64, 0, 30000, 332, "row_block/threads=128,rows=4,lanes=64/@,vector=@,batch=4", TINY, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 15000, 332, "row_block/threads=128,rows=4,lanes=128/@,vector=@,batch=8", TINY, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 5000, ANY, "row_block/threads=128,rows=4,lanes=128/@,vector=@,batch=8", TINY, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 120000, ANY, "merge_path/items=128,lanes=128/@,vector=@,batch=4,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 250000, 83, "row_block/threads=128,rows=64,lanes=128/@,vector=@,batch=8", SHARED, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 250000, 4468, "merge_path/items=256,lanes=128/@,vector=@,batch=4,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 32, 0, 250000, ANY, "merge_path/items=1024,lanes=16/@,vector=@,batch=4,prepared=0", HUGE_ROW, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 250000, ANY, "merge_path/items=512,lanes=128/@,vector=@,batch=8,prepared=0", HUGE_ROW, 0, 0},
    {WLMI_TARGET_CUDA, 0, 32, 0, 500000, 117, "merge_path/items=1024,lanes=32/@,vector=@,batch=8,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 500000, 117, "row_vec/lanes=128/@,vector=@,batch=8", WHOLE, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 500000, ANY, "merge_path/items=512,lanes=128/@,vector=@,batch=8,prepared=0", SKEWED, 0, 30},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 500000, ANY, "merge_path/items=512,lanes=128/@,vector=@,batch=4,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 2000000, 197, "row_vec/lanes=128/@,vector=@,batch=16", WHOLE, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 3.0, 2000000, ANY, "merge_path/items=1024,lanes=128/@,vector=@,batch=4,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 128, 0, 2000000, ANY, "merge_path/items=2048,lanes=32/@,vector=@,batch=8,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, 2000000, ANY, "merge_path/items=2048,lanes=64/@,vector=@,batch=8,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 16, 1.0, 20000000, ANY, "merge_path/items=2048,lanes=16/@,vector=@,batch=4,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 64, 1.0, ANY, ANY, "merge_path/items=2048,lanes=64/@,vector=@,batch=8,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 1.0, 20000000, ANY, "merge_path/items=1024,lanes=128/@,vector=@,batch=4,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 1.0, ANY, ANY, "merge_path/items=2048,lanes=64/@,vector=@,batch=8,prepared=0", SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, 0, 32, 0, ANY, 8, "merge_path/items=1024,lanes=32/@,vector=@,batch=4,prepared=0", MANY, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, ANY, 8, "row_block/threads=128,rows=64,lanes=128/@,vector=@,batch=4", MANY, 0, 0},
    {WLMI_TARGET_CUDA, 0, 16, 0, ANY, 32, "row_vec/lanes=16/@,vector=@,batch=8", EVEN, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, ANY, 32, "row_vec/lanes=64/@,vector=@,batch=8", EVEN, 0, 0},
    {WLMI_TARGET_CUDA, 0, 16, 0, 5000000, ANY, "merge_path/items=1024,lanes=16/@,vector=@,batch=4,prepared=0", FEW, 0, 0},
    {WLMI_TARGET_CUDA, 0, 32, 0, 5000000, ANY, "merge_path/items=2048,lanes=32/@,vector=@,batch=8,prepared=0", FEW, 0, 0},
    {WLMI_TARGET_CUDA, 0, 64, 0, 5000000, ANY, "merge_path/items=1024,lanes=64/@,vector=@,batch=8,prepared=0", FEW, 0, 0},
    {WLMI_TARGET_CUDA, 0, 16, 0, ANY, ANY, "row_block/threads=128,rows=32,lanes=16/@,vector=@,batch=8", LONG, 0, 0},
    {WLMI_TARGET_CUDA, 0, 32, 0, ANY, ANY, "row_block/threads=128,rows=16,lanes=32/@,vector=@,batch=8", LONG, 0, 0},
    {WLMI_TARGET_CUDA, 0, ANY, 0, ANY, ANY, "row_vec/lanes=128/@,vector=@,batch=8", LONG, 0, 0},
    {WLMI_TARGET_CUDA, 1, 32, 0, ANY, ANY, "row_sample/threads=32,rows=8,vector=1,batch=8", SAMPLED_NARROW, 0, 0},
    {WLMI_TARGET_CUDA, 1, 64, 0, 4096, ANY, "row_sample/threads=64,rows=4,vector=1,batch=8", SAMPLED_FEW, 0, 0},
    {WLMI_TARGET_CUDA, 1, 128, 0, ANY, ANY, "row_sample/threads=32,rows=4,vector=@,batch=8", SAMPLED_WARP, 0, 0},
    {WLMI_TARGET_CUDA, 1, ANY, 0, 4096, ANY, "row_sample/threads=64,rows=2,vector=@,batch=8", SAMPLED_FEW, 0, 0},
    {WLMI_TARGET_CUDA, 1, ANY, 0, ANY, ANY, "row_sample/threads=32,rows=4,vector=@,batch=8", SAMPLED_WARP, 0, 0},
    {WLMI_TARGET_CUDA, 1, ANY, 0, ANY, ANY, "row_kept/lanes=64/@,vector=@,batch=4", KEPT, 0, 0},
    {WLMI_TARGET_HOST, 0, ANY, 1.5, ANY, ANY, "host_nnz/nonzeros=8192,tile=#", HOST_SKEWED, 0, 0},
    {WLMI_TARGET_HOST, 0, ANY, 0, ANY, ANY, "host_row/rows=128,tile=#", HOST_EVEN, 0, 0},
    {WLMI_TARGET_HOST, 1, ANY, 0, ANY, ANY, "host_row/rows=128,tile=#", "the host family that samples", 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, 32, 0, ANY, 6, "sddmm_row/lanes=16/@,vector=@,batch=4", GRADIENT_SHORT, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, 64, 0, ANY, 6, "sddmm_row/lanes=32/@,vector=@,batch=4", GRADIENT_SHORT, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, 128, 0, ANY, 6, "sddmm_row/lanes=64/@,vector=@,batch=4", GRADIENT_SHORT, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, ANY, 0, ANY, 6, "sddmm_row/lanes=128/@,vector=@,batch=4", GRADIENT_SHORT, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, 128, 0, ANY, 82, "sddmm_row/lanes=128/@,vector=@,batch=8", GRADIENT_EVEN, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, ANY, 0, ANY, 82, "sddmm_row/lanes=128/@,vector=@,batch=4", GRADIENT_EVEN, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, 16, 0, 20000, ANY, "sddmm_nnz/share=8,lanes=16/@,vector=@,batch=4", GRADIENT_TINY, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, ANY, 0, 30000, ANY, "sddmm_nnz/share=8,lanes=64/@,vector=@,batch=8", GRADIENT_TINY, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, 128, 0, 50000, ANY, "sddmm_nnz/share=8,lanes=32/@,vector=@,batch=8", GRADIENT_TINY, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, 128, 0, 500000, 117, "sddmm_row/lanes=128/@,vector=@,batch=8", GRADIENT_EVEN, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, ANY, 0, 500000, 117, "sddmm_row/lanes=128/@,vector=@,batch=4", GRADIENT_EVEN, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, 32, 0, 500000, ANY, "sddmm_nnz/share=8,lanes=16/@,vector=@,batch=4", GRADIENT, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, 128, 0, 500000, ANY, "sddmm_nnz/share=8,lanes=32/@,vector=@,batch=4", GRADIENT, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, ANY, 0, 500000, ANY, "sddmm_nnz/share=32,lanes=64/@,vector=@,batch=8", GRADIENT, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, 128, 0, ANY, 279, "sddmm_row/lanes=128/@,vector=@,batch=8", GRADIENT_EVEN, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, ANY, 0, ANY, 279, "sddmm_row/lanes=128/@,vector=@,batch=4", GRADIENT_EVEN, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, 32, 0, ANY, ANY, "sddmm_nnz/share=32,lanes=16/@,vector=@,batch=4", GRADIENT, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, 128, 0, ANY, ANY, "sddmm_nnz/share=32,lanes=32/@,vector=@,batch=4", GRADIENT, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, 256, 0, ANY, ANY, "sddmm_nnz/share=32,lanes=64/@,vector=@,batch=4", GRADIENT, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, ANY, 0, ANY, ANY, "sddmm_nnz/share=32,lanes=128/@,vector=@,batch=4", GRADIENT, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_SDDMM, ANY, 0, ANY, ANY, "sddmm_row/lanes=128/@,vector=@,batch=4", GRADIENT_ROWS, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_MESSAGE, ANY, 0, ANY, 6, "row_vec/lanes=1024/@,vector=@,batch=4", MESSAGE_WHOLE, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_MESSAGE, ANY, 0, ANY, 49, "row_vec/lanes=1024/@,vector=@,batch=8", MESSAGE_WHOLE, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_MESSAGE, ANY, 0, 80000, 197, "row_block/threads=256,rows=4,lanes=1024/@,vector=@,batch=4", MESSAGE_TINY, 0, 6},
    {WLMI_TARGET_CUDA, WLMI_RULE_MESSAGE, ANY, 0, 80000, 197, "row_block/threads=256,rows=16,lanes=1024/@,vector=@,batch=4", MESSAGE_TINY, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_MESSAGE, ANY, 0, 5000, ANY, "row_block/threads=128,rows=4,lanes=1024/@,vector=@,batch=4", MESSAGE_TINY, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_MESSAGE, ANY, 0, 80000, 4468, "merge_path/items=128,lanes=1024/@,vector=@,batch=4,prepared=0", MESSAGE_SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_MESSAGE, ANY, 0, 250000, 4468, "merge_path/items=256,lanes=1024/@,vector=@,batch=4,prepared=0", MESSAGE_SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_MESSAGE, ANY, 0, ANY, 2655, "merge_path/items=512,lanes=1024/@,vector=@,batch=4,prepared=0", MESSAGE_SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_MESSAGE, 64, 0, 400000, ANY, "merge_path/items=1024,lanes=32/@,vector=@,batch=8,prepared=0", HUGE_ROW, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_MESSAGE, 256, 0, 400000, ANY, "merge_path/items=1024,lanes=64/@,vector=@,batch=8,prepared=0", HUGE_ROW, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_MESSAGE, ANY, 0, 400000, ANY, "merge_path/items=256,lanes=1024/@,vector=@,batch=4,prepared=0", MESSAGE_SKEWED, 0, 0},
    {WLMI_TARGET_CUDA, WLMI_RULE_MESSAGE, ANY, 0, ANY, ANY, "merge_path/items=1024,lanes=1024/@,vector=@,batch=4,prepared=0", MESSAGE_SKEWED, 0, 0},
    {WLMI_TARGET_HOST, WLMI_RULE_MESSAGE, ANY, 1.5, ANY, ANY, "host_nnz/nonzeros=8192,tile=#", HOST_SKEWED, 0, 0},
    {WLMI_TARGET_HOST, WLMI_RULE_MESSAGE, ANY, 0, ANY, ANY, "host_row/rows=128,tile=#", HOST_EVEN, 0, 0},
    {WLMI_TARGET_HOST, WLMI_RULE_SDDMM, ANY, 0, ANY, ANY, "sddmm_host/nonzeros=1024,ahead=16", "the host family of gradients", 0, 0},
};
// clang-format on

wlmi_rule_kind wlmi_rule_kind_of(const wlm_problem *problem) {
  if (problem->operation == WLM_SDDMM) return WLMI_RULE_SDDMM;
  if (problem->sampling.sample != WLM_SAMPLE_NONE) return WLMI_RULE_SAMPLED;
  return problem->operation == WLM_MESSAGE ? WLMI_RULE_MESSAGE : WLMI_RULE_PLAIN;
}

enum { LEAST_LANES = 4, MOST_LANES = 32, LEAST_TILE = 16, MOST_TILE = 128, VECTOR_OF_16_BITS = 8 };

/* Lanes for this many columns; if n is smaller, for n rounded up to a power of two. In 16 bits, products and attention
 * take twice the columns, and two lanes suffice for 16 columns where a group has a whole row. */
static long lanes_for(const wlmi_rule *rule, long columns, int64_t n, int vector) {
  const int has_16_bits =
      (rule->kind == WLMI_RULE_PLAIN || rule->kind == WLMI_RULE_HALVES) && vector == VECTOR_OF_16_BITS;
  const int has_rows = !strncmp(rule->variant, "row_vec/", 8);
  const long least = rule->max_n <= WLMI_NARROW ? 1 : has_16_bits && has_rows ? 2 : LEAST_LANES;
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

int wlmi_rule_spell(const wlmi_rule *rule, int64_t n, int number, char variant[WLMI_VARIANT_NAME]) {
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
      size += (size_t)snprintf(variant + size, 8, "%ld", lanes_for(rule, columns, n, vectors[number]));
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
