#include "bench/core_line.h"

#include <math.h>

#include "bench/results_file.h"
#include "tuner/timing.h"

/* "us":12.345,"variant":"...", with the keys given; null if there is none. */
static void put_method(wlmi_text *line, const char *us, const char *variant, const wlmi_method *method) {
  wlmi_json_real(line, us, "%.3f", wlmi_method_us(method));
  wlmi_json_string(line, variant, method && !method->failure ? method->name : NULL);
}

/* The largest error of the correct ones; NAN if there is none. */
static double largest_error(const wlmi_method *methods, int count) {
  double largest = NAN;
  for (int i = 0; i < count; i++)
    if (!methods[i].failure) largest = fmax(largest, methods[i].max_rel_err);
  return largest;
}

static void put_cusparse(const wlmi_core_result *r, wlmi_text *line) {
  wlmi_results_put_methods(line, "cusparse", "cusparse_errors", r->baselines, r->baseline_count);
  wlmi_json_real(line, "cusparse_max_rel_err", "%.3g", largest_error(r->baselines, r->baseline_count));
  wlmi_json_open(line, "cusparse_preprocess_us", '{');
  for (int way = 0; way < r->baseline_count; way++)
    if (!r->baselines[way].failure && r->preprocess[way] > 0)
      wlmi_json_real(line, r->baselines[way].name, "%.1f", 1e6 * r->preprocess[way]);
  wlmi_json_close(line, '}');
}

static void put_baselines(const wlmi_core_result *r, wlmi_text *line) {
  if (r->baseline_count && r->comparison->operands.device->info.limits.target == WLMI_TARGET_CUDA) {
    put_cusparse(r, line);
    return;
  }
  wlmi_json_raw(line, "cusparse", "null");
  wlmi_json_raw(line, "cusparse_errors", "{}");
  if (r->baseline_count) /* committed files have these names */
    wlmi_results_put_methods(line, "host_rivals", "host_rival_errors", r->baselines, r->baseline_count);
}

/* Of our winners. */
static double max_rel_err(const wlmi_core_result *r) {
  return fmax(r->best ? r->best->max_rel_err : NAN, r->prepared ? r->prepared->max_rel_err : NAN);
}

/* Compulsory traffic: every byte that must move at least once. That is the dense matrices, colind, values (for an SDDMM
 * the results instead) and rowptr with four bytes per row. */
static double compulsory_gbs(const wlmi_spec *spec, const wlmi_csr_host *a, double seconds) {
  const double dense = (double)wlmi_type_size(spec->problem.dense_type), rows = (double)a->rows + (double)a->cols;
  const double value = spec->problem.operation == WLM_SDDMM ? dense : (double)wlmi_type_size(spec->value_type);
  return (dense * (double)spec->problem.n * rows + (4 + value) * (double)a->nnz + 4 * (double)a->rows) / seconds / 1e9;
}

void wlmi_core_write_line(const wlmi_core_result *r, wlmi_text *line) {
  const wlmi_operands *operands = &r->comparison->operands;
  const wlmi_csr_host *a = &operands->a;
  const wlmi_spec *spec = &operands->spec;
  const double seconds = r->best ? r->best->seconds : NAN;
  wlmi_results_begin(line, r->bench);
  wlmi_results_put_matrix(line, a, r->bench->n);
  wlmi_json_string(line, "op", r->op);
  wlmi_json_string(line, "type", wlmi_type_name(spec->problem.dense_type));
  put_method(line, "us", "variant", r->best);
  wlmi_json_real(line, "spread", "%.4f", r->best ? r->best->spread : NAN);
  put_method(line, "prepared_us", "prepared_variant", r->prepared);
  wlmi_json_real(line, "prepare_us", "%.3f", r->prepared ? 1e6 * r->prepare_seconds : NAN);
  put_method(line, "chosen_us", "chosen_variant", r->chosen);
  put_method(line, "ge_spmm_us", "ge_spmm_variant", r->ge_spmm);
  put_baselines(r, line);
  wlmi_json_members(line, r->more);
  wlmi_json_real(line, "compulsory_gbs", "%.1f", compulsory_gbs(spec, a, seconds));
  wlmi_json_real(line, "gather_gbs", "%.1f", r->best ? wlmi_gather_gbs(spec, a->rows, operands->edges, seconds) : NAN);
  wlmi_json_real(line, "max_rel_err", "%.3g", max_rel_err(r));
  wlmi_json_integer(line, "checked_rows", wlmi_verifier_rows(r->comparison->verifier));
  wlmi_json_integer(line, "candidates", r->comparison->candidates);
  wlmi_json_integer(line, "calls", r->calls);
  wlmi_comparison_put_failures(r->comparison, "failed", line);
  wlmi_results_end(line);
}
