/* INPUT of the command line: a file or the name of a synthetic matrix. */
#ifndef WLM_SYNTH_INPUT_H
#define WLM_SYNTH_INPUT_H

#include "csr/csr.h"

/* Before it is read. */
wlm_status wlmi_input_size(const char *input, int64_t *rows, int64_t *cols, int64_t *nnz);
wlm_status wlmi_input_read(const char *input, wlmi_csr_host *out);

#endif
