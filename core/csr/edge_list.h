/* Edge lists: text, plain or compressed by gzip, with one edge in a line: "source target" or "source target weight",
 * divided by blanks, tabs, commas or semicolons. The first line with an edge decides which; all others must be like it.
 * Lines that begin with # or % and blank lines are skipped, and so is a first line of names, such as "source,target".
 * Sources are rows and targets are columns, counted from 0; the matrix has as many rows and columns as the largest of
 * all numbers asks for. */
#pragma once

#include "core/csr/csr.h"
#include "core/csr/lines.h"

/* As wlmi_matrix_market_parse. The size is known at the end only, so `check` is asked about what was read so far
 * whenever the entries have doubled. */
wlm_status wlmi_edge_list_parse(wlmi_lines *lines, const wlmi_size_check *check, wlmi_csr_host *out);
