#include "runtime/purpose.h"

#include "core/problem/spec_key.h"

void wlmi_purposes(const char *variant, wlmi_helper helper, const wlmi_spec *spec, const wlmi_limits *limits,
                   wlmi_hash purposes[WLMI_COLUMNS_KINDS]) {
  const int64_t n = spec->problem.n, heads = spec->problem.heads;
  wlmi_spec rest = *spec;
  rest.problem.n = 0;
  rest.problem.heads = heads > 1 ? 2 : 1;
  rest.problem.policy.deterministic = 0; /* it says which variants are valid, and is not in their text */
  const wlmi_hash parts[] = {wlmi_generator_version(),
                             wlmi_hash_text(variant),
                             wlmi_spec_id(&rest),
                             {(uint64_t)wlmi_generator_arch(limits->arch), limits->any_width != 0},
                             {0, helper}};
  const wlmi_hash all_else = wlmi_hash_bytes(parts, sizeof parts);
  const int64_t columns[WLMI_COLUMNS_KINDS][2] = {
      [WLMI_COLUMNS_ALL] = {n, n / heads}, [WLMI_COLUMNS_OF_HEAD] = {0, n / heads}, [WLMI_COLUMNS_ANY] = {0, 0}};
  for (int i = 0; i < WLMI_COLUMNS_KINDS; i++) {
    const wlmi_hash both[] = {all_else, {(uint64_t)columns[i][0], (uint64_t)columns[i][1]}};
    purposes[i] = wlmi_hash_bytes(both, sizeof both);
  }
}

typedef struct emission {
  wlmi_generator *generator;
  const wlmi_variant *variant;
  const wlmi_spec *spec;
  const wlmi_limits *limits;
} emission;

/* The hash of the text for other columns and heads; zeros where the variant is no candidate for them. */
static wlm_status hash_for(const emission *e, int64_t n, int64_t heads, int any_width, wlmi_hash *hash) {
  wlmi_spec spec = *e->spec;
  wlmi_limits limits = *e->limits;
  wlmi_program program;
  spec.problem.n = n;
  spec.problem.heads = heads;
  limits.any_width = any_width;
  *hash = (wlmi_hash){0, 0};
  const wlm_status status = wlmi_generator_emit_program(
      e->generator, e->variant ? WLMI_HELPER_NONE : WLMI_HELPER_GRADIENT, e->variant, &spec, &limits, &program);
  if (status == WLM_OK) *hash = wlmi_hash_text(program.source);
  wlmi_program_release(&program);
  if (status == WLM_ERR_OUT_OF_MEMORY) return status;
  wlmi_clear_error();
  return WLM_OK;
}

/* The form for any number of columns depends on them in no other way than by the variants that are valid. So a text
 * that is equal to this form for many more columns depends on none. */
static wlm_status find_columns(const emission *e, wlmi_hash text, int any_width, wlmi_columns *columns) {
  enum { MORE = 600 }; /* a multiple of every vector */
  const int64_t n = e->spec->problem.n, heads = e->spec->problem.heads;
  wlmi_hash other;
  *columns = WLMI_COLUMNS_ANY;
  WLM_CHECK(hash_for(e, n + MORE * heads, heads, 1, &other));
  if (wlmi_hash_equal(text, other)) return WLM_OK;
  *columns = WLMI_COLUMNS_ALL;
  if (heads == 1) return WLM_OK;
  WLM_CHECK(hash_for(e, 2 * n, 2 * heads, any_width, &other));
  if (wlmi_hash_equal(text, other)) *columns = WLMI_COLUMNS_OF_HEAD;
  return WLM_OK;
}

wlm_status wlmi_purposes_of(wlmi_generator *generator, const wlmi_variant *variant, const wlmi_spec *spec,
                            const wlmi_limits *limits, wlmi_hash text, wlmi_hash purposes[2], int *count) {
  const emission e = {generator, variant, spec, limits};
  wlmi_limits form = *limits;
  wlmi_hash of_form = text;
  char name[WLMI_VARIANT_NAME] = "";
  if (variant) wlmi_variant_print(wlmi_generator_families(generator), variant, name);
  *count = 0;
  for (int i = 0; i < 2; i++) { /* the form that was emitted, and the other one */
    wlmi_hash found[WLMI_COLUMNS_KINDS];
    wlmi_columns columns;
    form.any_width = i ? !limits->any_width : limits->any_width;
    if (i) WLM_CHECK(hash_for(&e, spec->problem.n, spec->problem.heads, form.any_width, &of_form));
    if (!wlmi_hash_equal(text, of_form)) break;
    WLM_CHECK(find_columns(&e, text, form.any_width, &columns));
    wlmi_purposes(name, variant ? WLMI_HELPER_NONE : WLMI_HELPER_GRADIENT, spec, &form, found);
    purposes[(*count)++] = found[columns];
  }
  return WLM_OK;
}
