/* Seeded synthetic matrices: twins of published graphs, and uniform ones. See twin.c for how they are made. */
#pragma once

#include "core/csr/csr.h"

/* twin:NAME[,scale=1][,seed=1][,communities=50][,local=0.7][,numbering=scattered|contiguous]
 *   NAME is reddit, proteins, products, arxiv (undirected), youtube, roadnet-ca or web-google
 * uniform:rows=R,d=D[,cols=R][,seed=1]
 * synth:rows=R,d=D,cv=X[,cols=R][,longest=L][,seed=1] and, where it is square, communities=1, local=0,
 * numbering=contiguous
 *   R rows of D entries each on average (D = 2.5 is fine), with the coefficient of variation X as far as R, the columns
 *   and the longest row (L, or as long as X needs it) allow it
 * Columns of a row ascend and are distinct; values are multiples of 1/128 in [0.5, 1.5), exact in every type.
 * The same name gives the same bits on every machine and for any number of threads. */
wlm_status wlmi_twin_size(const char *name, int64_t *rows, int64_t *cols, int64_t *nnz); /* the size, without making the
                                                                                          * matrix */
wlm_status wlmi_twin_make(const char *name, wlmi_csr_host *out);
