/* Read from the top; the first rule that holds and whose variant is valid decides, so every group ends in
 * a rule for any N. The CUDA rows are what GE-SpMM and ES-SpMM publish; the host rows follow from the host
 * families' own reasons: the non-zeros split evenly where one row could keep a thread busy alone, and the
 * widest tile that N fills. */
#include "runtime/dispatch/rules.h"

#define ANY_N INT64_MAX

const wlm_rule wlm_rules[] = {
    {WLM_TARGET_CUDA, 0, 32, 0, "row_crc/cf=1,rows=4", "GE-SpMM: coalesced row caching alone for n <= 32"},
    {WLM_TARGET_CUDA, 0, ANY_N, 0, "row_crc/cf=2,rows=8", "GE-SpMM: two warps merged for n > 32"},
    {WLM_TARGET_CUDA, 1, 32, 0, "row_sample/threads=32,rows=16,vector=1,batch=4",
     "ES-SpMM: 512 threads, 32 a row for n <= 32"},
    {WLM_TARGET_CUDA, 1, 64, 0, "row_sample/threads=64,rows=8,vector=1,batch=4",
     "ES-SpMM: 512 threads, 64 a row for n <= 64"},
    {WLM_TARGET_CUDA, 1, ANY_N, 0, "row_sample/threads=128,rows=4,vector=1,batch=4", "ES-SpMM: 512 threads, 128 a row"},
    {WLM_TARGET_HOST, 0, 31, 1.5, "host_nnz/nonzeros=8192,tile=16", "skewed rows: split the non-zeros evenly"},
    {WLM_TARGET_HOST, 0, 63, 1.5, "host_nnz/nonzeros=8192,tile=32", "skewed rows: split the non-zeros evenly"},
    {WLM_TARGET_HOST, 0, 127, 1.5, "host_nnz/nonzeros=8192,tile=64", "skewed rows: split the non-zeros evenly"},
    {WLM_TARGET_HOST, 0, ANY_N, 1.5, "host_nnz/nonzeros=8192,tile=128", "skewed rows: split the non-zeros evenly"},
    {WLM_TARGET_HOST, 0, 31, 0, "host_row/rows=128,tile=16", "even rows: a thread takes whole rows"},
    {WLM_TARGET_HOST, 0, 63, 0, "host_row/rows=128,tile=32", "even rows: a thread takes whole rows"},
    {WLM_TARGET_HOST, 0, 127, 0, "host_row/rows=128,tile=64", "even rows: a thread takes whole rows"},
    {WLM_TARGET_HOST, 0, ANY_N, 0, "host_row/rows=128,tile=128", "even rows: a thread takes whole rows"},
    {WLM_TARGET_HOST, 1, 63, 0, "host_row/rows=128,tile=16", "the host family that samples"},
    {WLM_TARGET_HOST, 1, ANY_N, 0, "host_row/rows=128,tile=64", "the host family that samples"},
};
const int wlm_rule_count = sizeof wlm_rules / sizeof *wlm_rules;
