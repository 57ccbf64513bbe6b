/* show: prints the source that would be compiled. Needs no GPU: it uses the limits of a common device. */
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/family.h"
#include "cli/problem.h"
#include "cli/session.h"
#include "generator/generator.h"

static const wlmi_limits targets[] = {
    {.target = WLMI_TARGET_CUDA, .arch = 90, .threads_per_block = 1024, .shared_bytes = 232448, .processors = 132},
    {.target = WLMI_TARGET_HOST, .processors = 16},
};

static void report_list(const wlmi_families *families, wlmi_report *report) {
  wlmi_report_array(report, NULL);
  for (int i = 0; i < families->count; i++) {
    const wlmi_family *family = &families->list[i];
    wlmi_report_object(report, NULL);
    wlmi_report_string(report, "family", family->name);
    wlmi_report_object(report, "parameters");
    for (int k = 0; k < family->parameter_count; k++) {
      const wlmi_parameter *parameter = &family->parameters[k];
      wlmi_report_array(report, parameter->name);
      for (int v = 0; v < parameter->value_count; v++) wlmi_report_string(report, NULL, parameter->values[v]);
      wlmi_report_close(report);
    }
    wlmi_report_close(report);
    wlmi_report_close(report);
  }
  wlmi_report_close(report);
}

static wlm_status print_list(wlmi_generator *generator) {
  wlmi_text text = {0};
  wlm_status status = wlmi_generator_list(generator, &text);
  if (status == WLM_OK && text.data) fputs(text.data, stdout);
  wlmi_text_release(&text);
  return status;
}

/* Emits for the given target, or for the first one that accepts the variant, and writes the variant's full name to
 * `name`; reports the last refusal. */
static wlm_status emit(wlmi_generator *generator, const char *variant, int target, const wlmi_spec *spec,
                       char name[WLMI_VARIANT_NAME], wlmi_program *program) {
  wlmi_text reason = {0};
  wlm_status status = WLM_OK;
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    if (target >= 0 && (int)targets[i].target != target) continue;
    wlmi_text_release(&reason);
    if (wlmi_family_first(generator, spec, &targets[i], variant, name) != WLM_OK) continue;
    WLM_TRY(wlmi_generator_refusal(generator, name, spec, &targets[i], &reason));
    if (!reason.size) {
      status = wlmi_generator_emit(generator, name, spec, &targets[i], program);
      goto done;
    }
  }
  status = wlmi_fail(WLM_ERR_UNSUPPORTED, "'%s' is no candidate: it %s%s", variant,
                     reason.size ? reason.data : "has no variant for this problem",
                     reason.size || target < 0 ? "" : " and --target");
done:
  wlmi_text_release(&reason);
  return status;
}

wlm_status wlmi_cmd_show(const wlmi_cli_options *options, wlmi_report *report) {
  wlm_status status;
  wlmi_generator *generator = NULL;
  wlmi_program program = {0};
  wlmi_spec spec;
  char name[WLMI_VARIANT_NAME];
  wlm_problem problem = options->problem;
  WLM_TRY(wlmi_cli_generator(&generator));
  if (options->list) {
    if (report->json)
      report_list(wlmi_generator_families(generator), report);
    else
      status = print_list(generator);
    goto done;
  }
  problem.n = options->n[options->n_count - 1];
  WLM_TRY(wlmi_cli_spec(&problem, options->rowptr_type, options->colind_type, problem.dense_type, 1, &spec));
  WLM_TRY(emit(generator, options->arguments[0], options->target, &spec, name, &program));
  if (report->json) {
    wlmi_report_object(report, NULL);
    wlmi_report_members(report, "variant=%s source=%s", name, program.source);
  } else {
    fputs(program.source, stdout);
  }
done:
  wlmi_program_release(&program);
  wlmi_generator_destroy(generator);
  return status;
}
