#include "bench/core_line.h"

#include "bench/host_rivals.h"
#include "bench/results_file.h"
#include "bench/tell.h"
#include "tuner/timing.h"

/* ---- the JSON line -------------------------------------------------------------------------------- */

/* "us":12.345,"variant":"...", with the names given; null for what is not there. */
static void put_entrant(wlm_text *line, const char *us, const char *variant, const wlm_entrant *entrant) {
  wlm_tell_number(line, us, 3, wlm_tell_us(entrant));
  wlm_text_puts(line, ",");
  wlm_tell_string(line, variant, entrant && !entrant->failure ? entrant->name : NULL);
  wlm_text_puts(line, ",");
}

static void put_cusparse(const wlm_core_result *r, wlm_text *line) {
  const char *before = "";
  wlm_text_puts(line, "\"cusparse\":{");
  for (int way = 0; way < WLM_CUSPARSE_WAYS; way++) {
    if (way) wlm_text_puts(line, ",");
    wlm_tell_number(line, wlm_cusparse_name(way), 3, wlm_tell_us(&r->rivals[way]));
  }
  wlm_text_puts(line, "},\"cusparse_errors\":{");
  for (int way = 0; way < WLM_CUSPARSE_WAYS; way++) {
    if (!r->rivals[way].failure) continue;
    wlm_text_printf(line, "%s\"%s\":", before, wlm_cusparse_name(way));
    wlm_text_json_string(line, r->rivals[way].failure);
    before = ",";
  }
  before = "";
  wlm_text_puts(line, "},\"cusparse_preprocess_us\":{");
  for (int way = 0; way < WLM_CUSPARSE_WAYS; way++) {
    if (r->rivals[way].failure || r->preprocess[way] <= 0) continue;
    wlm_text_printf(line, "%s\"%s\":%.1f", before, wlm_cusparse_name(way), 1e6 * r->preprocess[way]);
    before = ",";
  }
  wlm_text_puts(line, "},");
}

/* Each byte that must move at least once: B, C, columns and values, rowptr at four bytes. */
static double compulsory_gbs(const wlm_csr_host *a, int64_t n, double seconds) {
  double dense = (double)n * ((double)a->cols + (double)a->rows);
  return 4 * (dense + 2 * (double)a->nnz + (double)a->rows) / seconds / 1e9;
}

void wlm_core_write_line(const wlm_core_result *r, wlm_text *line) {
  const wlm_operands *operands = &r->contest->operands;
  const wlm_csr_host *a = &operands->a;
  const int64_t n = r->bench->n;
  wlm_results_begin(line, r->suite, operands->device->info.name, r->bench->matrix);
  wlm_text_printf(line, "\"rows\":%lld,\"cols\":%lld,\"nnz\":%lld,\"n\":%lld,\"op\":\"sum\",\"type\":\"f32\",",
                  (long long)a->rows, (long long)a->cols, (long long)a->nnz, (long long)n);
  put_entrant(line, "us", "variant", r->best);
  wlm_text_printf(line, "\"spread\":%.4f,", r->best->spread);
  put_entrant(line, "prepared_us", "prepared_variant", r->prepared);
  wlm_text_printf(line, "\"prepare_us\":%.3f,", 1e6 * r->prepare_seconds);
  put_entrant(line, "chosen_us", "chosen_variant", r->chosen);
  put_entrant(line, "ge_spmm_us", "ge_spmm_variant", r->ge_spmm);
  if (operands->device->info.limits.target == WLM_TARGET_CUDA) {
    put_cusparse(r, line);
  } else {
    wlm_text_puts(line, "\"cusparse\":null,\"cusparse_errors\":{},");
    wlm_host_rivals_write(r->rivals, line);
    wlm_text_puts(line, ",");
  }
  wlm_text_printf(line, "\"compulsory_gbs\":%.1f,\"gather_gbs\":%.1f,\"max_rel_err\":%.3g,",
                  compulsory_gbs(a, n, r->best->seconds),
                  wlm_gather_gbs(&operands->spec, a->rows, operands->edges, r->best->seconds), r->max_rel_err);
  wlm_text_printf(line, "\"checked_rows\":%lld,\"candidates\":%lld,\"calls\":%lld,\"failed\":{",
                  (long long)wlm_verifier_rows(r->contest->verifier), (long long)r->contest->candidates,
                  (long long)r->calls);
  if (r->contest->failures.size) wlm_text_append(line, r->contest->failures.data, r->contest->failures.size);
  wlm_text_puts(line, "}}\n");
}

/* ---- the row for people ---------------------------------------------------------------------------- */

const char wlm_core_heading[] =
    "matrix                    n         us  spread  best variant                       prepared   ge-spmm    chosen   "
    "  rival  (algorithm)    speed-up  max_rel_err\n";

void wlm_core_write_row(const wlm_core_result *r, wlm_text *row) {
  const wlm_entrant *rival = NULL;
  for (int i = 0; i < r->rival_count; i++)
    if (!r->rivals[i].failure && (!rival || r->rivals[i].seconds < rival->seconds)) rival = &r->rivals[i];
  wlm_text_printf(row, "%-22.22s %4lld", r->bench->matrix, (long long)r->bench->n);
  wlm_tell_cell(row, 10, wlm_tell_us(r->best));
  wlm_text_printf(row, " %6.1f%%  %-32.32s", 100 * r->best->spread, r->best->name);
  wlm_tell_cell(row, 10, wlm_tell_us(r->prepared));
  wlm_tell_cell(row, 9, wlm_tell_us(r->ge_spmm));
  wlm_tell_cell(row, 9, wlm_tell_us(r->chosen));
  wlm_tell_cell(row, 9, wlm_tell_us(rival));
  wlm_text_printf(row, "  %-14s", rival ? rival->name : "-");
  wlm_tell_cell(row, 8, wlm_tell_us(rival) / wlm_tell_us(r->best));
  wlm_text_printf(row, "  %11.1e\n", r->max_rel_err);
}
