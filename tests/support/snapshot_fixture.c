#include "support/snapshot_fixture.h"

#include <stdint.h>
#include <string.h>

#include "core/base/memory.h"
#include "support/asserts.h"

static wlmi_families known;

const wlmi_families *snapshot_families(void) {
  static const char *const values[][3] = {
      {"host_nnz", "nonzeros", "8192"}, {"host_nnz", "tile", "16"},         {"host_nnz", "tile", "32"},
      {"host_nnz", "tile", "64"},       {"host_nnz", "tile", "128"},        {"host_row", "rows", "128"},
      {"host_row", "tile", "16"},       {"host_row", "tile", "32"},         {"host_row", "tile", "64"},
      {"host_row", "tile", "128"},      {"sddmm_host", "nonzeros", "1024"}, {"sddmm_host", "ahead", "16"},
  };
  static int filled;
  for (size_t i = 0; i < sizeof values / sizeof *values && !filled; i++) {
    if (!i || strcmp(values[i][0], values[i - 1][0]))
      assert_int_equal(wlmi_families_add(&known, values[i][0], ""), WLM_OK);
    assert_int_equal(wlmi_families_add_value(&known, values[i][1], values[i][2]), WLM_OK);
  }
  filled = 1;
  return &known;
}

wlmi_variant snapshot_variant(const wlmi_snapshot *snapshot, const char *name) {
  const wlmi_families *families = snapshot->families ? snapshot->families : snapshot_families();
  wlmi_variant variant;
  wlmi_variant_recognise(families, name, &variant);
  if (variant.family || families != &known || strchr(name, '/')) return variant;
  assert_int_equal(wlmi_families_add(&known, name, ""), WLM_OK);
  wlmi_variant_recognise(&known, name, &variant);
  return variant;
}

wlm_stats snapshot_stats(int64_t rows, int64_t nnz, double cv, uint64_t fingerprint) {
  return (wlm_stats)SQUARE(rows, nnz, cv, fingerprint);
}

void snapshot_case(wlmi_snapshot *snapshot, const wlm_stats *stats, const char *problem, int64_t n) {
  const wlmi_case c = {.problem = problem, .n = n, .stats = stats, .point = wlmi_point_of(stats, n)};
  assert_int_equal(wlmi_snapshot_add_case(snapshot, &c), WLM_OK);
}

static wlmi_measured *room_for_one(wlmi_case *c) {
  const size_t size = (size_t)(c->count + c->failed + 1) * sizeof(wlmi_measured);
  wlmi_measured *candidates = wlmi_realloc((void *)c->candidates, size);
  assert_non_null(candidates);
  c->candidates = candidates;
  return &candidates[c->count + c->failed];
}

void snapshot_measured(wlmi_snapshot *snapshot, const char *variant, double cost, double prepare) {
  wlmi_case *c = &snapshot->cases[snapshot->case_count - 1];
  *room_for_one(c) = (wlmi_measured){.value = snapshot_variant(snapshot, variant),
                                     .variant = variant,
                                     .cost = cost * 1e6,
                                     .prepare = prepare * 1e6,
                                     .precise = 1};
  c->count++;
}

void snapshot_failure(wlmi_snapshot *snapshot, const char *variant, const char *reason) {
  wlmi_case *c = &snapshot->cases[snapshot->case_count - 1];
  *room_for_one(c) =
      (wlmi_measured){.value = snapshot_variant(snapshot, variant), .variant = variant, .reason = reason, .failed = 1};
  c->failed++;
}

static int accepts(void *user, const wlmi_variant *value, int may_prepare) {
  char variant[WLMI_VARIANT_NAME];
  (void)user;
  wlmi_variant_print(snapshot_families(), value, variant);
  return strncmp(variant, "no", 2) != 0 && (may_prepare || strcmp(variant, "turned"));
}

wlmi_variant_set snapshot_accepted(void) {
  return (wlmi_variant_set){.families = snapshot_families(), .is_valid = accepts};
}

wlm_status select_for(const wlmi_snapshot *snapshot, const wlm_stats *stats, const char *problem, const wlmi_spec *spec,
                      const wlmi_limits *limits, const wlmi_variant_set *variants, wlmi_decision *decision) {
  const wlmi_request request = {
      .stats = stats, .problem = problem, .spec = spec, .limits = limits, .variants = variants};
  return wlmi_select(snapshot, &request, decision);
}
