#include "bench/core_line.h"

#include <math.h>

#include "bench/results_file.h"
#include "tuner/timing.h"

static const char *name_of(const wlmi_method *method) { return method && !method->failure ? method->name : ""; }

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
  wlmi_json_put(line,
                "op=%s type=%s us=%.3f variant=%s spread=%.4f prepared_us=%.3f prepared_variant=%s prepare_us=%.3f "
                "chosen_us=%.3f chosen_variant=%s ge_spmm_us=%.3f ge_spmm_variant=%s",
                r->op, wlmi_type_name(spec->problem.dense_type), wlmi_method_us(r->best), name_of(r->best),
                r->best ? r->best->spread : NAN, wlmi_method_us(r->prepared), name_of(r->prepared),
                r->prepared ? 1e6 * r->prepare_seconds : NAN, wlmi_method_us(r->chosen), name_of(r->chosen),
                wlmi_method_us(r->ge_spmm), name_of(r->ge_spmm));
  put_baselines(r, line);
  wlmi_json_members(line, r->more);
  wlmi_json_put(line, "compulsory_gbs=%.1f gather_gbs=%.1f max_rel_err=%.3g checked_rows=%jd candidates=%jd calls=%jd",
                compulsory_gbs(spec, a, seconds),
                r->best ? wlmi_gather_gbs(spec, a->rows, operands->edges, seconds) : NAN, max_rel_err(r),
                wlmi_verifier_rows(r->comparison->verifier), r->comparison->candidates, r->calls);
  wlmi_comparison_put_failures(r->comparison, "failed", line);
  wlmi_results_end(line);
}
