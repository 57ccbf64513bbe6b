/* INPUT of the command line: a file or the name of a synthetic matrix. */
#ifndef WLM_MATRIX_INPUT_H
#define WLM_MATRIX_INPUT_H

#include "matrix/csr.h"

wlm_status wlm_input_read(const char *input, wlm_csr_host *out);

#endif
