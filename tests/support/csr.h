/* Checks that a matrix on the host is well formed, and hashes it. Include after cmocka. */
#pragma once

#include "core/base/hash.h"
#include "core/csr/csr.h"

/* Fails the running test if rowptr or a column index is wrong. */
void assert_csr(const wlmi_csr_host *csr);

/* xxh3-128 of rows, cols, nnz, rowptr (int64), colind (int32) and the bits of the values, if there are any; all
 * little-endian. */
wlmi_hash csr_hash(const wlmi_csr_host *csr);
