/* Messages over rows, columns and edges: operations that are described by their operands.
 *
 * warploom.h multiplies: its messages see one number of an edge and one row of B. Here an operation is a text that
 * names its operands and says what is computed of them, once for every edge (i, k) of A and column j:
 *
 *   "sum=relu(b+e)"                        C[i,j] = sum over the edges of row i of relu(b[k,j] + e[p,j])
 *   "sum=sigmoid(x+k)*b"                   x of the edge's row, k and b of its column
 *   "mean=b; max=b; min=b"                 three reductions in one walk of A
 *   "edge_sum=x*b"                         a number for each edge and head (SDDMM)
 *   "x:row:1; k:column:1; sum=tanh(x+k)*a*b"   x and k have one number a row, which all columns share
 *   "t:edge_sum=x*k; score=t/8; softmax=b"     attention, with the products of x and k in each head as scores
 *
 * Each is one kernel, which reads nothing but the operands and writes nothing but the results. It is chosen, tuned and
 * explained like a product:
 *
 *   wlm_problem problem = WLM_PROBLEM_INIT;
 *   problem.operation = WLM_MESSAGE;
 *   problem.reduce = WLM_CUSTOM;
 *   problem.custom = "sum=relu(b+e)";
 *   problem.n = 64;
 *   wlm_message_args message = WLM_MESSAGE_ARGS_INIT;
 *   message.operands[0] = b, message.operands[1] = e;   // in the order of wlm_message_describe
 *   message.results[0] = c;
 *   wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
 *   args.operands = &message, args.stream = stream;
 *   wlm_spmm(context, &a, &problem, &args);             // or wlm_plan_create and wlm_plan_execute
 *
 * The text. Parts are separated by ';'. An operand is NAME:PLACE[:WIDTH], a result KIND=EXPRESSION.
 *
 *   PLACE  row      of A: an operand has one line for each row, and an edge (i, k) sees line i
 *          column   of A: the edge sees line k
 *          edge     one line for each edge, in the order of colind
 *          all      one line for the whole call
 *   WIDTH  n        a number for each column (the default)
 *          heads    a number for each head, which the head's n / heads columns share
 *          1        one number, which all columns share; of `all` it is a scalar of the call
 *          base     of a row: the largest scores that a score gave, one for each head, of the accumulator's type
 *          scale    of a row: the numbers beside them in the same array
 *          wins     of a row: the positions that a maximum stored (wlm_message_args.positions); its value is
 *                   1 where the position is that of the edge, and 0 elsewhere
 *   KIND   sum mean max min prod     over the edges of a row: rows x n
 *          softmax                   the sum with the softmax of the scores as weights: rows x n
 *          score                     the largest score of a row, and 1 / its sum of exp(score - largest):
 *                                    rows x heads x 2
 *          edge                      a value for each edge: nnz x n, in the order of colind
 *          edge_sum                  the same, summed over the columns of a head: nnz x heads
 *
 * Between operands and results, NAME:edge_sum=EXPRESSION makes a number for each edge and head: the sum of the
 * expression over the columns of the head. Expressions behind it read NAME as an operand of width heads; there are at
 * most 8.
 *
 * A text has at most one score, which stands before the softmax results that it weighs. It is one number for each edge
 * and head, so it reads operands of width heads and 1, and sums. With heads = n each column has its own weights:
 * "s:edge_sum=b; score=s; softmax=b". As a result it has the accumulator's type, may be NULL, and gets no epilogue; it
 * is what a gradient reads as operands of width base and scale. A score of -inf gives its edge the weight 0; a row
 * without edges, or with -inf for all of them, gives 0 and the numbers 0 and 0. A NaN in a score makes its row and head
 * NaN. expscale(s,m,f) is f * exp(s - m) with s rounded first: the weight of an edge with the score s.
 *
 * Without a declaration a is edge:heads, the values of A (1 where it has none); b and k are column:n, x and y row:n and
 * e edge:n; `degree` is the number of edges of the row of A. `kept` is edge:heads and stands for dropout: its entry of
 * wlm_message_args.scalars is a share s, 0 <= s < 1. For this share of edges and heads `kept` is 0, for the others
 * 1/(1-s). wlm_execute_args.seed says which, as for attention, so "softmax=kept*b" leaves out weights. An operand has
 * one place and width in the whole text. The language of expressions is that of user-defined operators (warploom.h).
 *
 * With wlm_problem.transpose the results sum, mean, max, min and prod are over the edges of a column, cols x n.
 * Places are still those of A, and edge operands are read and edge results written in the order of A. A row without
 * edges gives 0 (prod: 1). Types: operands and results have wlm_problem.dense_type, a that of wlm_csr.values, positions
 * wlm_problem.argmax_type. Rows of operands and results that no edge names are not read; every line of a row result is
 * written. With wlm_problem.sampling the edges that the rows of A sample are reduced, as in a product, and edge results
 * of all others are 0; `mean` divides by those kept. With wlm_problem.epilogue each result gets bias and activation.
 * WLM_ERR_UNSUPPORTED: alpha and beta; an epilogue beside results of edges; a norm with results of rows but sum. */
#ifndef WARPLOOM_WARPLOOM_MESSAGE_H
#define WARPLOOM_WARPLOOM_MESSAGE_H

#include "warploom.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WLM_MAX_OPERANDS = 16, WLM_MAX_RESULTS = 6, WLM_OPERAND_NAME = 16 };

typedef enum wlm_place { WLM_PLACE_ROW, WLM_PLACE_COLUMN, WLM_PLACE_EDGE, WLM_PLACE_ALL } wlm_place;
typedef enum wlm_width {
  WLM_WIDTH_N,
  WLM_WIDTH_HEADS,
  WLM_WIDTH_ONE,
  WLM_WIDTH_WINS,
  WLM_WIDTH_BASE,
  WLM_WIDTH_SCALE
} wlm_width;

/* What a message reads and writes: wlm_execute_args.operands. The arrays have the order of wlm_message_describe. All
 * pointers but those of scalars are to device memory; entries of operands without memory (a, degree, kept, scalars) are
 * not read. Results must not overlap each other or operands. */
struct wlm_message_args {
  size_t size;
  const void *operands[WLM_MAX_OPERANDS];
  int64_t operand_ld[WLM_MAX_OPERANDS]; /* elements from line to line; 0 = the width */
  double scalars[WLM_MAX_OPERANDS];     /* of operands all:1 and of `kept` */
  void *results[WLM_MAX_RESULTS];
  int64_t result_ld[WLM_MAX_RESULTS];
  /* Of results max and min, where wlm_problem.want_argmax is set: rows x n of argmax_type with the result's leading
   * dimension, the position in colind of A of the edge that wins, -1 without edges. The lowest position wins among
   * equal messages, and the first NaN over everything. */
  void *positions[WLM_MAX_RESULTS];
};
#define WLM_MESSAGE_ARGS_INIT                                \
  {                                                          \
    sizeof(wlm_message_args), {0}, {0}, {0}, {0}, {0}, { 0 } \
  }

/* The operands and results of a message, as its text names them. */
typedef struct wlm_message_table {
  size_t size;
  int operands, results; /* how many */
  struct {
    char name[WLM_OPERAND_NAME];
    wlm_place place;
    wlm_width width;
  } operand[WLM_MAX_OPERANDS];
  struct {
    wlm_place place; /* of A: WLM_PLACE_COLUMN with transpose */
    wlm_width width;
    wlm_reduce reduce; /* of a row or column; WLM_SUM for softmax and score, and a score has the width base */
  } result[WLM_MAX_RESULTS];
} wlm_message_table;
#define WLM_MESSAGE_TABLE_INIT                                              \
  {                                                                         \
    sizeof(wlm_message_table), 0, 0, {{{0}, WLM_PLACE_ROW, WLM_WIDTH_N}}, { \
      { WLM_PLACE_ROW, WLM_WIDTH_N, WLM_SUM }                               \
    }                                                                       \
  }

/* Fills *table for problem->custom. First stand the operands that the text declares, in its order, then those that need
 * no declaration and are used, in the order a, b, e, k, x, y, degree, kept; declaring one of these as it is anyway
 * changes nothing. Results stand in the order of the text. WLM_ERR_INVALID_ARGUMENT with the part, the column and what
 * to write instead. */
WLM_API wlm_status wlm_message_describe(const wlm_problem *problem, wlm_message_table *table);

/* Writes the problem that computes the gradients of a message by some of its operands.
 *
 * `by` names operands, "x" or "b,k,e": all of a row (and edges), or all of a column (and edges). One walk of A, or of
 * A^T with gradient->transpose = 1, gives them all. Its operands are those of `problem` that the derivatives use, and
 *   dR  the gradient by result R (d0, d1, ...), before its epilogue: rows x n for a row result, otherwise like the
 *       result
 *   wR  the positions of result R, of max and min
 *   pR  of a prod of m the product of the messages that are not 0, rows x n
 *   cR  the softmax result R, before its epilogue
 *   lR, sR  both what the score R gave, of which they read the bases and the scales
 *   zR  and how many are 0: the results of "prod=m==0?1:m; sum=m==0?1:0", over the operands of the message
 * with more of these letters before them where the text has such names. Its results have the order of `by`: a sum, rows
 * (columns) x n for an operand of a row (column), also where its width is 1 or heads: sum that over the columns it is
 * shared by; and edge or edge_sum for an operand of edges. gradient->custom is *text, which is released with
 * wlm_string_free.
 *
 * Expressions are differentiated by the rules of calculus; relu, leaky_relu, max, min and ?: by their branches, and
 * floor, ceil, trunc and round give 0, as in PyTorch. The numbers that a score gives count as constants. Sampling
 * stays that of `problem`; the call gets the same seed. WLM_ERR_UNSUPPORTED for operands of `all`, and for max and min
 * with WLM_SAMPLE_FASTRAND. */
WLM_API wlm_status wlm_message_gradient(const wlm_problem *problem, const char *by, wlm_problem *gradient, char **text);

/* What the INIT macros do, for callers without macros. */
WLM_API wlm_status wlm_message_args_init(void *args, size_t size);
WLM_API wlm_status wlm_message_table_init(void *table, size_t size);

#ifdef __cplusplus
}
#endif
#endif
