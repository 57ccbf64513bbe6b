/* show: the source that would be compiled. Needs no GPU: the limits are those of a device that many have. */
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/session.h"
#include "common/memory.h"
#include "generator/generator.h"

static const wlmi_limits targets[] = {
    {.target = WLM_TARGET_CUDA, .arch = 90, .threads_per_block = 1024, .shared_bytes = 232448, .processors = 132},
    {.target = WLM_TARGET_HOST, .processors = 16},
};

static wlm_status print_list(wlmi_generator *generator) {
  wlmi_text text = {0};
  wlm_status status = wlmi_generator_list(generator, &text);
  if (status == WLM_OK && text.data) fputs(text.data, stdout);
  wlmi_text_release(&text);
  return status;
}

/* The wanted target, or the one that takes the variant; the last refusal is the one to tell. */
static wlm_status emit(wlmi_generator *generator, const char *variant, int target, const wlmi_spec *spec,
                       wlmi_program *program) {
  wlmi_text reason = {0};
  wlm_status status = WLM_OK;
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    if (target >= 0 && (int)targets[i].target != target) continue;
    wlmi_text_release(&reason);
    WLM_TRY(wlmi_generator_refusal(generator, variant, spec, &targets[i], &reason));
    if (!reason.size) {
      status = wlmi_generator_emit(generator, variant, spec, &targets[i], program);
      goto done;
    }
  }
  status = wlmi_fail(WLM_ERR_UNSUPPORTED, "'%s' is no candidate: it %s", variant, reason.data);
done:
  wlmi_text_release(&reason);
  return status;
}

wlm_status wlmi_cmd_show(const wlmi_cli_options *options, wlmi_report *report) {
  (void)report;
  wlm_status status;
  wlmi_generator *generator = NULL;
  wlmi_program program = {0};
  wlmi_spec spec;
  wlm_problem problem = options->problem;
  const char *folder = secure_getenv("WARPLOOM_TEMPLATES");
  WLM_TRY(wlmi_generator_create(folder && *folder ? folder : NULL, &generator));
  if (options->list) {
    status = print_list(generator);
    goto done;
  }
  problem.n = options->n[options->n_count - 1];
  WLM_TRY(wlmi_cli_spec(&problem, options->rowptr_type, options->colind_type, problem.dense_type, 1, &spec));
  WLM_TRY(emit(generator, options->arguments[0], options->target, &spec, &program));
  fputs(program.source, stdout);
done:
  wlmi_program_release(&program);
  wlmi_generator_destroy(generator);
  return status;
}
