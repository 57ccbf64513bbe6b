/* Read from the top; the first rule that holds and whose variant is valid decides, so every group ends in
 * rules for any N. The CUDA rows follow what was best on an H200 in the geometric mean over the matrices of suite core
 * and of the tuner's design that fall under a rule (N = 4 to 256), with GE-SpMM's own rules
 * behind them for an N that vectors don't fit, and the same with half as many lanes where 16-bit types
 * make a vector of 8 (not measured); the host rows follow from the host families' own reasons: the
 * non-zeros split evenly where one row could keep a thread busy alone, and the widest tile that N fills. A variant that
 * must be prepared stands in a row for 2 calls or more (a test holds the table to it), above the row for any. */
#include "runtime/dispatch/rules.h"

#define ANY         INT64_MAX
#define SKEWED      "skewed rows: share rows and non-zeros evenly, in larger pieces the more there are"
#define TINY        "so small that a second launch would cost more than it brings"
#define DENSE       "skewed rows, so many non-zeros that a few rows fill a block"
#define NARROW      "few columns: the lanes of a warp share the edges of a row"
#define EVEN        "even rows: a group of lanes a row"
#define GRADIENT    "gradient: equal shares of edges for groups of lanes that keep a row of dC"
#define HOST_SKEWED "skewed rows: split the non-zeros evenly"
#define HOST_EVEN   "even rows: a thread takes whole rows"

// clang-format off
const wlm_rule wlm_rules[] = {
    {WLM_TARGET_CUDA, 0, 4, 0, 20000, 1, "row_fold/lanes=32,vector=4,batch=4", NARROW},
    {WLM_TARGET_CUDA, 0, 16, 0, 20000, 1, "row_block/threads=128,rows=4,lanes=4,vector=4,batch=4", TINY},
    {WLM_TARGET_CUDA, 0, 32, 0, 20000, 1, "row_block/threads=128,rows=4,lanes=8,vector=4,batch=4", TINY},
    {WLM_TARGET_CUDA, 0, 64, 0, 20000, 1, "row_block/threads=128,rows=4,lanes=16,vector=4,batch=4", TINY},
    {WLM_TARGET_CUDA, 0, 128, 0, 20000, 1, "row_block/threads=256,rows=16,lanes=16,vector=4,batch=4", TINY},
    {WLM_TARGET_CUDA, 0, ANY, 0, 20000, 1, "row_block/threads=256,rows=16,lanes=32,vector=4,batch=4", TINY},
    {WLM_TARGET_CUDA, 0, 16, 1.0, 250000, 1, "merge_path/items=256,lanes=4,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 16, 1.0, 700000, 1, "merge_path/items=512,lanes=4,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 16, 1.0, 1200000, 1, "merge_path/items=1024,lanes=4,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 16, 1.0, 20000000, 1, "merge_path/items=2048,lanes=4,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 32, 1.0, 250000, 1, "merge_path/items=256,lanes=8,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 32, 1.0, 700000, 1, "merge_path/items=512,lanes=8,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 32, 1.0, 1200000, 1, "merge_path/items=1024,lanes=8,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 32, 1.0, 20000000, 1, "merge_path/items=2048,lanes=8,vector=4,batch=8,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 64, 1.0, 250000, 1, "merge_path/items=256,lanes=16,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 64, 1.0, 700000, 1, "merge_path/items=512,lanes=16,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 64, 1.0, 1200000, 1, "merge_path/items=1024,lanes=16,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 64, 1.0, 20000000, 1, "merge_path/items=2048,lanes=16,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 128, 1.0, 250000, 1, "merge_path/items=256,lanes=16,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, ANY, 1.0, 250000, 1, "merge_path/items=512,lanes=16,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, ANY, 1.0, 700000, 1, "merge_path/items=512,lanes=32,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, ANY, 1.0, 1200000, 1, "merge_path/items=1024,lanes=32,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, ANY, 1.0, 20000000, 1, "merge_path/items=1024,lanes=32,vector=4,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 16, 0.9, ANY, 1, "row_block/threads=256,rows=64,lanes=4,vector=4,batch=8", DENSE},
    {WLM_TARGET_CUDA, 0, ANY, 0.9, ANY, 1, "row_block/threads=256,rows=64,lanes=8,vector=4,batch=8", DENSE},
    {WLM_TARGET_CUDA, 0, 4, 0, ANY, 1, "row_fold/lanes=4,vector=4,batch=2", NARROW},
    {WLM_TARGET_CUDA, 0, 16, 0, ANY, 1, "row_vec/lanes=4,vector=4,batch=8", EVEN},
    {WLM_TARGET_CUDA, 0, 32, 0, ANY, 1, "row_vec/lanes=8,vector=4,batch=8", EVEN},
    {WLM_TARGET_CUDA, 0, ANY, 0, ANY, 1, "row_vec/lanes=16,vector=4,batch=8", EVEN},
    {WLM_TARGET_CUDA, 0, 32, 0, 20000, 1, "row_block/threads=128,rows=4,lanes=4,vector=8,batch=8", TINY},
    {WLM_TARGET_CUDA, 0, 64, 0, 20000, 1, "row_block/threads=128,rows=4,lanes=8,vector=8,batch=8", TINY},
    {WLM_TARGET_CUDA, 0, ANY, 0, 20000, 1, "row_block/threads=128,rows=4,lanes=16,vector=8,batch=8", TINY},
    {WLM_TARGET_CUDA, 0, 32, 1.0, 250000, 1, "merge_path/items=256,lanes=4,vector=8,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 32, 1.0, 700000, 1, "merge_path/items=512,lanes=4,vector=8,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 32, 1.0, 1200000, 1, "merge_path/items=1024,lanes=4,vector=8,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 32, 1.0, 20000000, 1, "merge_path/items=2048,lanes=4,vector=8,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 64, 1.0, 250000, 1, "merge_path/items=256,lanes=8,vector=8,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 64, 1.0, 700000, 1, "merge_path/items=512,lanes=8,vector=8,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 64, 1.0, 1200000, 1, "merge_path/items=1024,lanes=8,vector=8,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, 64, 1.0, 20000000, 1, "merge_path/items=2048,lanes=8,vector=8,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, ANY, 1.0, 250000, 1, "merge_path/items=256,lanes=16,vector=8,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, ANY, 1.0, 700000, 1, "merge_path/items=512,lanes=16,vector=8,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, ANY, 1.0, 1200000, 1, "merge_path/items=1024,lanes=16,vector=8,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, ANY, 1.0, 20000000, 1, "merge_path/items=2048,lanes=16,vector=8,batch=4,prepared=0", SKEWED},
    {WLM_TARGET_CUDA, 0, ANY, 0.9, ANY, 1, "row_block/threads=256,rows=64,lanes=4,vector=8,batch=8", DENSE},
    {WLM_TARGET_CUDA, 0, 32, 0, ANY, 1, "row_vec/lanes=4,vector=8,batch=8", EVEN},
    {WLM_TARGET_CUDA, 0, ANY, 0, ANY, 1, "row_vec/lanes=8,vector=8,batch=8", EVEN},
    {WLM_TARGET_CUDA, 0, 32, 0, ANY, 1, "row_crc/cf=1,rows=4", "GE-SpMM: coalesced row caching alone for n <= 32"},
    {WLM_TARGET_CUDA, 0, ANY, 0, ANY, 1, "row_crc/cf=2,rows=8", "GE-SpMM: two warps merged for n > 32"},
    {WLM_TARGET_CUDA, 1, ANY, 0, ANY, 1, "row_sample/threads=32,rows=4,vector=4,batch=4", "ES-SpMM: a warp a row, vectors carry N"},
    {WLM_TARGET_CUDA, 1, ANY, 0, ANY, 1, "row_sample/threads=32,rows=4,vector=1,batch=4", "ES-SpMM: a warp a row"},
    {WLM_TARGET_HOST, 0, 16, 1.5, ANY, 1, "host_nnz/nonzeros=8192,tile=16", HOST_SKEWED},
    {WLM_TARGET_HOST, 0, 32, 1.5, ANY, 1, "host_nnz/nonzeros=8192,tile=32", HOST_SKEWED},
    {WLM_TARGET_HOST, 0, 64, 1.5, ANY, 1, "host_nnz/nonzeros=8192,tile=64", HOST_SKEWED},
    {WLM_TARGET_HOST, 0, ANY, 1.5, ANY, 1, "host_nnz/nonzeros=8192,tile=128", HOST_SKEWED},
    {WLM_TARGET_HOST, 0, 16, 0, ANY, 1, "host_row/rows=128,tile=16", HOST_EVEN},
    {WLM_TARGET_HOST, 0, 32, 0, ANY, 1, "host_row/rows=128,tile=32", HOST_EVEN},
    {WLM_TARGET_HOST, 0, 64, 0, ANY, 1, "host_row/rows=128,tile=64", HOST_EVEN},
    {WLM_TARGET_HOST, 0, ANY, 0, ANY, 1, "host_row/rows=128,tile=128", HOST_EVEN},
    {WLM_TARGET_HOST, 1, 16, 0, ANY, 1, "host_row/rows=128,tile=16", "the host family that samples"},
    {WLM_TARGET_HOST, 1, 32, 0, ANY, 1, "host_row/rows=128,tile=32", "the host family that samples"},
    {WLM_TARGET_HOST, 1, 64, 0, ANY, 1, "host_row/rows=128,tile=64", "the host family that samples"},
    {WLM_TARGET_HOST, 1, ANY, 0, ANY, 1, "host_row/rows=128,tile=128", "the host family that samples"},
    {WLM_TARGET_CUDA, WLM_RULE_SDDMM, 32, 0, ANY, 1, "sddmm_nnz/share=32,lanes=4,vector=4,batch=4", GRADIENT},
    {WLM_TARGET_CUDA, WLM_RULE_SDDMM, 64, 0, ANY, 1, "sddmm_nnz/share=32,lanes=8,vector=4,batch=4", GRADIENT},
    {WLM_TARGET_CUDA, WLM_RULE_SDDMM, 256, 0, ANY, 1, "sddmm_nnz/share=32,lanes=16,vector=4,batch=4", GRADIENT},
    {WLM_TARGET_CUDA, WLM_RULE_SDDMM, ANY, 0, ANY, 1, "sddmm_nnz/share=32,lanes=32,vector=4,batch=4", GRADIENT},
    {WLM_TARGET_CUDA, WLM_RULE_SDDMM, ANY, 0, ANY, 1, "sddmm_nnz/share=32,lanes=32,vector=8,batch=4", GRADIENT},
    {WLM_TARGET_CUDA, WLM_RULE_SDDMM, ANY, 0, ANY, 1, "sddmm_nnz/share=32,lanes=4,vector=8,batch=4", GRADIENT},
    {WLM_TARGET_CUDA, WLM_RULE_SDDMM, ANY, 0, ANY, 1, "sddmm_nnz/share=32,lanes=32,vector=2,batch=4", GRADIENT},
    {WLM_TARGET_CUDA, WLM_RULE_SDDMM, ANY, 0, ANY, 1, "sddmm_nnz/share=32,lanes=4,vector=2,batch=4", GRADIENT},
    {WLM_TARGET_CUDA, WLM_RULE_SDDMM, ANY, 0, ANY, 1, "sddmm_nnz/share=32,lanes=32,vector=1,batch=4", GRADIENT},
    {WLM_TARGET_CUDA, WLM_RULE_SDDMM, ANY, 0, ANY, 1, "sddmm_nnz/share=32,lanes=4,vector=1,batch=4", GRADIENT},
    {WLM_TARGET_HOST, WLM_RULE_SDDMM, ANY, 0, ANY, 1, "sddmm_host/nonzeros=1024,ahead=16", "the host family of gradients"},
};
// clang-format on
wlm_rule_kind wlm_rule_kind_of(const wlm_problem *problem) {
  if (problem->operation == WLM_SDDMM) return WLM_RULE_SDDMM;
  return problem->sample != WLM_SAMPLE_NONE ? WLM_RULE_SAMPLED : WLM_RULE_PLAIN;
}

const int wlm_rule_count = sizeof wlm_rules / sizeof *wlm_rules;
