/* The generator of an exported library: it knows the families and the candidates of the contained problems, and emits
 * nothing. */
#include "core/base/memory.h"
#include "core/problem/spec_key.h"
#include "exported/tables.h"
#include "generator/generator.h"

struct wlmi_generator {
  wlmi_families families;
};

wlm_status wlmi_generator_create(const char *folder, wlmi_generator **out) {
  const wlmi_exported *tables = &wlmi_exported_tables;
  wlm_status status = WLM_OK;
  (void)folder;
  wlmi_generator *generator = *out = wlmi_alloc_zero(1, sizeof *generator);
  if (!generator) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "generator");
  for (int64_t i = 0; i < tables->family_count && status == WLM_OK; i++) {
    const wlmi_exported_family *f = &tables->families[i];
    status = f->parameter ? wlmi_families_add_value(&generator->families, f->parameter, f->value)
                          : wlmi_families_add(&generator->families, f->name, "");
  }
  if (status == WLM_OK) return status;
  wlmi_generator_destroy(generator);
  *out = NULL;
  return status;
}

void wlmi_generator_destroy(wlmi_generator *generator) {
  if (!generator) return;
  wlmi_families_release(&generator->families);
  wlmi_free(generator);
}

const wlmi_families *wlmi_generator_families(const wlmi_generator *generator) { return &generator->families; }

typedef struct description {
  wlmi_candidate_list list; /* the first member, to which callers have a pointer */
  wlmi_candidate candidates[];
} description;

static wlmi_candidate candidate_of(const wlmi_families *families, const wlmi_exported_candidate *c,
                                   const wlmi_limits *limits) {
  wlmi_candidate candidate = {.value = c->value,
                              .lanes = wlmi_variant_integer(families, &c->value, "lanes"),
                              .batch = wlmi_variant_integer(families, &c->value, "batch"),
                              .pass = wlmi_exported_pass(&wlmi_exported_tables, c->pass, limits),
                              .launches = c->launches,
                              .prepares = c->prepares,
                              .whole_rows = c->whole_rows,
                              .walks_a = c->walks_a};
  wlmi_variant_print(families, &c->value, candidate.variant);
  return candidate;
}

static wlm_status find(const wlmi_spec *spec, const wlmi_limits *limits, const wlmi_exported_problem **problem) {
  const wlmi_hash id = wlmi_spec_id(spec);
  *problem = wlmi_exported_problem_of(wlmi_exported_target_of(&wlmi_exported_tables, limits), &id);
  return *problem ? WLM_OK : wlmi_exported_lacks(spec, limits);
}

wlm_status wlmi_generator_describe(wlmi_generator *generator, const wlmi_spec *spec, const wlmi_limits *limits,
                                   const wlmi_candidate_list **list) {
  const wlmi_exported_problem *problem;
  *list = NULL;
  WLM_CHECK(find(spec, limits, &problem));
  const int64_t count = problem->candidate_count;
  description *described = wlmi_alloc(sizeof *described + (size_t)count * sizeof *described->candidates);
  if (!described) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "candidates");
  described->list = (wlmi_candidate_list){&generator->families, described->candidates, count};
  for (int64_t i = 0; i < count; i++)
    described->candidates[i] = candidate_of(&generator->families, &problem->candidates[i], limits);
  *list = &described->list;
  return WLM_OK;
}

void wlmi_candidates_drop(const wlmi_candidate_list *list) { wlmi_free((void *)list); }

wlm_status wlmi_generator_refusal(wlmi_generator *generator, const char *name, const wlmi_spec *spec,
                                  const wlmi_limits *limits, wlmi_text *reason) {
  const wlmi_exported_problem *problem;
  wlmi_variant variant;
  WLM_CHECK(wlmi_variant_parse(&generator->families, name, &variant));
  WLM_CHECK(find(spec, limits, &problem));
  for (int64_t i = 0; i < problem->candidate_count; i++)
    if (wlmi_variant_same(&problem->candidates[i].value, &variant)) return WLM_OK;
  wlmi_text_puts(reason, "is no candidate of the exported problem");
  return WLM_OK;
}
