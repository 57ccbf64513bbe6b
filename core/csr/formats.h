/* The formats of matrix files. The content of a file decides which it is, not its name; only a text named .mtx must be
 * Matrix Market. `check` (NULL = none) may refuse the size. The detail text of a failure is "path:line: what is wrong;
 * what to do". WLM_ERR_IO (missing file, damaged gzip data), WLM_ERR_PARSE, WLM_ERR_UNSUPPORTED (complex, array, packed
 * by xz...). */
#pragma once

#include "core/csr/csr.h"
#include "core/csr/lines.h"

/* Reads a file of any of them, or standard input ("-"), once from its begin to its end. */
wlm_status wlmi_matrix_file_read(const char *path, const wlmi_size_check *check, wlmi_csr_host *out);

/* Its parts, which read the rest of an open file. */

/* How a text begins. */
typedef struct wlmi_text_head {
  const char *line;  /* the first one that is neither blank nor a comment, or a banner; NULL = there is none */
  char comment[256]; /* the beginning of the comment before it, "" = none */
} wlmi_text_head;

/* Matrix Market, plain or compressed by gzip: coordinate; pattern, integer, unsigned-integer or real; general,
 * symmetric, hermitian or skew-symmetric (expanded on reading). Numbers become float, rounded to nearest. The head's
 * line is the banner, whose %% may be missing. */
wlm_status wlmi_matrix_market_parse(wlmi_lines *lines, const wlmi_text_head *head, const wlmi_size_check *check,
                                    wlmi_csr_host *out);

/* Edge lists: text, plain or compressed by gzip, with one edge in a line: "source target" or "source target weight",
 * divided by blanks, tabs, commas or semicolons. The first edge decides which; all others must be like it. A line of
 * names before it, such as "weight,source,target", decides the order; it may be a comment. Lines that begin with # or %
 * and blank lines are skipped. Sources are rows and targets are columns, counted from 0; the matrix has as many rows
 * and columns as the largest of all numbers asks for. The size is known at the end only, so `check` is asked about what
 * was read so far whenever the entries have doubled. A list whose first line has the sizes of the others, as Matrix
 * Market without a banner or METIS, is refused. */
wlm_status wlmi_edge_list_parse(wlmi_lines *lines, const wlmi_text_head *head, const wlmi_size_check *check,
                                wlmi_csr_host *out);

/* Matrices of scipy.sparse.save_npz: csr, csc and coo. Values become float, rounded to nearest. Errors name the array
 * and its entry in the place of a line. */
wlm_status wlmi_scipy_parse(wlmi_lines *lines, const wlmi_size_check *check, wlmi_csr_host *out);
