#include "core/problem/variant.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/problem/slice.h"

/* ---- the table ------------------------------------------------------------------------------------- */

static wlm_status keep(wlmi_families *families, const char *text, const char **kept) {
  int64_t index;
  const wlm_status status = wlmi_strings_keep(&families->texts, text, &index);
  if (status == WLM_OK) *kept = families->texts.texts[index];
  return status;
}

wlm_status wlmi_families_add(wlmi_families *families, const char *name, const char *version) {
  if (families->count == WLMI_FAMILIES)
    return wlmi_fail(WLM_ERR_TEMPLATE, "%s: there are more than %d families", name, WLMI_FAMILIES);
  wlmi_family *family = &families->list[families->count];
  *family = (wlmi_family){.name = NULL};
  WLM_CHECK(keep(families, name, &family->name));
  WLM_CHECK(keep(families, version, &family->version));
  families->count++;
  return WLM_OK;
}

wlm_status wlmi_families_add_value(wlmi_families *families, const char *name, const char *value) {
  wlmi_family *family = &families->list[families->count - 1];
  int last = family->parameter_count - 1;
  if (last < 0 || strcmp(family->parameters[last].name, name)) {
    if (++last == WLMI_PARAMETERS)
      return wlmi_fail(WLM_ERR_TEMPLATE, "%s: has more than %d parameters", family->name, WLMI_PARAMETERS);
    WLM_CHECK(keep(families, name, &family->parameters[last].name));
    family->parameter_count++;
  }
  wlmi_parameter *parameter = &family->parameters[last];
  if (parameter->value_count == WLMI_PARAMETER_VALUES)
    return wlmi_fail(WLM_ERR_TEMPLATE, "%s: '%s' has more than %d values", family->name, name, WLMI_PARAMETER_VALUES);
  WLM_CHECK(keep(families, value, &parameter->values[parameter->value_count]));
  parameter->value_count++;
  return WLM_OK;
}

void wlmi_families_release(wlmi_families *families) {
  wlmi_strings_release(&families->texts);
  families->count = 0;
}

/* ---- from a name ------------------------------------------------------------------------------------- */

int wlmi_family_find(const wlmi_families *families, const char *name, size_t length) {
  for (int i = 0; i < families->count; i++)
    if (wlmi_slice_is((wlmi_slice){name, length}, families->list[i].name)) return i + 1;
  return 0;
}

const char *wlmi_family_version(const wlmi_families *families, const char *variant) {
  const int family = wlmi_family_find(families, variant, strcspn(variant, "/"));
  return family ? families->list[family - 1].version : "";
}

static int is_word(wlmi_slice s) {
  for (size_t i = 0; i < s.size; i++)
    if (!isalnum((unsigned char)s.text[i]) && s.text[i] != '_') return 0;
  return s.size > 0;
}

static wlm_status no_family(const wlmi_families *families, const char *name, wlmi_slice part) {
  wlmi_text text = {0};
  for (int i = 0; i < families->count; i++) wlmi_text_printf(&text, "%s%s", i ? ", " : "", families->list[i].name);
  const wlm_status status = wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "'%s': no family '%.*s'; there are: %s", name,
                                      (int)part.size, part.text, text.data ? text.data : "none");
  wlmi_text_release(&text);
  return status;
}

/* The values of the parameters as the name gives them; *unknown is a key that is no parameter. */
static wlm_status read_values(const wlmi_family *family, const char *name, wlmi_slice given[WLMI_PARAMETERS],
                              wlmi_slice *unknown) {
  for (const char *at = name + strlen(family->name) + 1; *(at += strspn(at, ",")); at += strcspn(at, ",")) {
    const wlmi_slice part = {at, strcspn(at, ",")}, key = {at, strcspn(at, "=,")};
    const wlmi_slice value = {at + key.size + 1, part.size - key.size - 1};
    if (key.size == part.size || !is_word(key) || !is_word(value))
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "'%s': '%.*s' is not NAME=VALUE", name, (int)part.size, part.text);
    int i = 0;
    while (i < family->parameter_count && !wlmi_slice_is(key, family->parameters[i].name)) i++;
    if (i == family->parameter_count) {
      *unknown = key;
      continue;
    }
    if (given[i].size)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "'%s': '%s' stands twice", name, family->parameters[i].name);
    given[i] = value;
  }
  return WLM_OK;
}

static wlm_status find_value(const wlmi_parameter *parameter, const char *name, wlmi_slice given, uint8_t *place) {
  for (*place = 0; *place < parameter->value_count; ++*place)
    if (given.size && wlmi_slice_is(given, parameter->values[*place])) return WLM_OK;
  wlmi_text text = {0};
  for (int i = 0; i < parameter->value_count; i++) wlmi_text_printf(&text, "%s%s", i ? ", " : "", parameter->values[i]);
  const wlm_status status = wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "'%s': parameter '%s' must be one of: %s", name,
                                      parameter->name, text.data ? text.data : "");
  wlmi_text_release(&text);
  return status;
}

wlm_status wlmi_variant_parse(const wlmi_families *families, const char *name, wlmi_variant *variant) {
  wlmi_slice given[WLMI_PARAMETERS] = {{NULL, 0}}, unknown = {NULL, 0};
  const wlmi_slice part = {name, strcspn(name, "/")};
  wlmi_variant found = {.family = (uint8_t)wlmi_family_find(families, name, part.size)};
  *variant = (wlmi_variant){0};
  if (!found.family) return no_family(families, name, part);
  const wlmi_family *family = &families->list[found.family - 1];
  if (name[part.size]) WLM_CHECK(read_values(family, name, given, &unknown));
  for (int i = 0; i < family->parameter_count; i++)
    WLM_CHECK(find_value(&family->parameters[i], name, given[i], &found.values[i]));
  if (unknown.size)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "'%s': family '%s' has no parameter '%.*s'", name, family->name,
                     (int)unknown.size, unknown.text);
  *variant = found;
  return WLM_OK;
}

void wlmi_variant_recognise(const wlmi_families *families, const char *name, wlmi_variant *variant) {
  *variant = (wlmi_variant){0};
  if (families && wlmi_variant_parse(families, name, variant) != WLM_OK) wlmi_clear_error();
}

/* ---- to a name ----------------------------------------------------------------------------------------- */

int wlmi_variant_print(const wlmi_families *families, const wlmi_variant *variant, char name[WLMI_VARIANT_NAME]) {
  *name = 0;
  if (!variant->family) return 1;
  const wlmi_family *family = &families->list[variant->family - 1];
  int size = snprintf(name, WLMI_VARIANT_NAME, "%s", family->name);
  for (int i = 0; i < family->parameter_count && size < WLMI_VARIANT_NAME; i++)
    size += snprintf(name + size, (size_t)(WLMI_VARIANT_NAME - size), "%c%s=%s", i ? ',' : '/',
                     family->parameters[i].name, family->parameters[i].values[variant->values[i]]);
  return size < WLMI_VARIANT_NAME;
}

int wlmi_variant_integer(const wlmi_families *families, const wlmi_variant *variant, const char *name) {
  const wlmi_family *family = &families->list[variant->family - 1];
  for (int i = 0; i < family->parameter_count; i++)
    if (!strcmp(family->parameters[i].name, name)) return atoi(family->parameters[i].values[variant->values[i]]);
  return 0;
}
