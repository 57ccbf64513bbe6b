/* The formats of matrix files. All readers go once through their input, from its begin to its end. `check` (NULL =
 * none) may refuse the size. The detail text of a failure is "path:line: what is wrong; what to do". WLM_ERR_IO
 * (missing file, damaged gzip data), WLM_ERR_PARSE, WLM_ERR_UNSUPPORTED (complex, array...). */
#pragma once

#include "core/csr/csr.h"
#include "core/csr/lines.h"

/* Matrix Market files, plain or compressed by gzip: coordinate; pattern, integer or real; general, symmetric
 * or skew-symmetric (expanded on reading). Integers become float, rounded to nearest. */
wlm_status wlmi_matrix_market_parse(wlmi_lines *lines, const wlmi_size_check *check, wlmi_csr_host *out);

/* Edge lists: text, plain or compressed by gzip, with one edge in a line: "source target" or "source target weight",
 * divided by blanks, tabs, commas or semicolons. The first line with an edge decides which; all others must be like it.
 * Lines that begin with # or % and blank lines are skipped, and so is a first line of names, such as "source,target".
 * Sources are rows and targets are columns, counted from 0; the matrix has as many rows and columns as the largest of
 * all numbers asks for. The size is known at the end only, so `check` is asked about what was read so far whenever the
 * entries have doubled. */
wlm_status wlmi_edge_list_parse(wlmi_lines *lines, const wlmi_size_check *check, wlmi_csr_host *out);

/* Matrices of scipy.sparse.save_npz: csr, csc and coo. Values become float, rounded to nearest. Errors name the array
 * and its entry in the place of a line. */
wlm_status wlmi_scipy_parse(wlmi_lines *lines, const wlmi_size_check *check, wlmi_csr_host *out);
