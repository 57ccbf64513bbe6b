#include "tuner/stand_in.h"

#include "core/base/memory.h"
#include "core/csr/transpose.h"
#include "core/synth/input.h"
#include "core/synth/stand_in_name.h"

wlm_status wlmi_stand_in_make(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec,
                              wlmi_upload *upload) {
  char name[WLM_STAND_IN_NAME];
  wlmi_csr_host csr = {0}, transposed = {0};
  wlm_status status;
  *upload = (wlmi_upload){.device = NULL};
  wlmi_stand_in_name(stats, name);
  WLM_TRY(wlmi_input_read(name, &csr));
  if (!spec->has_values) {
    wlmi_free(csr.values);
    csr.values = NULL;
  }
  if (spec->problem.transpose) WLM_TRY(wlmi_csr_host_transpose(&csr, &transposed));
  status = wlmi_upload_create_typed(context, spec->problem.transpose ? &transposed : &csr, spec->rowptr_type,
                                    spec->colind_type, spec->value_type, spec->problem.heads, upload);
done:
  wlmi_csr_host_release(&csr);
  wlmi_csr_host_release(&transposed);
  return status;
}
