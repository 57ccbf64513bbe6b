/* INPUT of the command line: the name of a synthetic matrix (twin:..., uniform:..., synth:...), a Matrix Market file,
 * plain or compressed by gzip, or "-" for such a file on standard input. The content of a file decides, not its name.
 */
#ifndef WLM_SYNTH_INPUT_H
#define WLM_SYNTH_INPUT_H

#include "core/csr/csr.h"

/* Gives the size of the matrix without reading it whole: from its name or the head of its file. WLM_ERR_UNSUPPORTED for
 * standard input. */
wlm_status wlmi_input_size(const char *input, int64_t *rows, int64_t *cols, int64_t *nnz);
wlm_status wlmi_input_read(const char *input, wlmi_csr_host *out);

#endif
