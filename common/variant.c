#include "common/variant.h"

#include <ctype.h>
#include <stdlib.h>

#include "common/text.h"

/* ---- the table ------------------------------------------------------------------------------------- */

static wlm_status keep(wlmi_families *families, const char *text, const char **kept) {
  int64_t index;
  const wlm_status status = wlmi_strings_keep(&families->texts, text, &index);
  if (status == WLM_OK) *kept = families->texts.texts[index];
  return status;
}

wlm_status wlmi_families_add(wlmi_families *families, const char *name) {
  wlm_status status;
  if (families->count == WLM_FAMILIES)
    return wlmi_fail(WLM_ERR_TEMPLATE, "%s: there are more than %d families", name, WLM_FAMILIES);
  wlmi_family *family = &families->list[families->count];
  *family = (wlmi_family){.name = NULL};
  WLM_TRY(keep(families, name, &family->name));
  families->count++;
done:
  return status;
}

wlm_status wlmi_families_add_value(wlmi_families *families, const char *name, const char *value) {
  wlmi_family *family = &families->list[families->count - 1];
  int last = family->parameter_count - 1;
  wlm_status status;
  if (last < 0 || strcmp(family->parameters[last].name, name)) {
    if (++last == WLM_PARAMETERS)
      return wlmi_fail(WLM_ERR_TEMPLATE, "%s: has more than %d parameters", family->name, WLM_PARAMETERS);
    WLM_TRY(keep(families, name, &family->parameters[last].name));
    family->parameter_count++;
  }
  wlmi_parameter *parameter = &family->parameters[last];
  if (parameter->value_count == WLM_PARAMETER_VALUES)
    return wlmi_fail(WLM_ERR_TEMPLATE, "%s: '%s' has more than %d values", family->name, name, WLM_PARAMETER_VALUES);
  WLM_TRY(keep(families, value, &parameter->values[parameter->value_count]));
  parameter->value_count++;
done:
  return status;
}

void wlmi_families_release(wlmi_families *families) {
  wlmi_strings_release(&families->texts);
  families->count = 0;
}

/* ---- from a name ------------------------------------------------------------------------------------- */

typedef struct span {
  const char *at;
  size_t size;
} span;

static int is_text(span s, const char *text) { return !strncmp(text, s.at, s.size) && !text[s.size]; }

int wlmi_family_find(const wlmi_families *families, const char *name, size_t length) {
  for (int i = 0; i < families->count; i++)
    if (is_text((span){name, length}, families->list[i].name)) return i + 1;
  return 0;
}

static int is_word(span s) {
  for (size_t i = 0; i < s.size; i++)
    if (!isalnum((unsigned char)s.at[i]) && s.at[i] != '_') return 0;
  return s.size > 0;
}

/* Why a name is no variant; `part` is the piece of it that is wrong. */
typedef enum fault { NONE, NO_FAMILY, NO_PAIR, TWICE, NO_VALUE, NO_PARAMETER } fault;

static fault read_name(const wlmi_families *families, const char *name, wlmi_variant *variant, span *part) {
  span given[WLM_PARAMETERS] = {{NULL, 0}}, unknown = {NULL, 0};
  *part = (span){name, strcspn(name, "/")};
  *variant = (wlmi_variant){.family = (uint8_t)wlmi_family_find(families, name, part->size)};
  if (!variant->family) return NO_FAMILY;
  const wlmi_family *family = &families->list[variant->family - 1];
  for (const char *at = name + part->size + (name[part->size] == '/'); *(at += strspn(at, ",")); at += part->size) {
    *part = (span){at, strcspn(at, ",")};
    const span key = {at, strcspn(at, "=,")}, value = {at + key.size + 1, part->size - key.size - 1};
    if (key.size == part->size || !is_word(key) || !is_word(value)) return NO_PAIR;
    int i = 0;
    while (i < family->parameter_count && !is_text(key, family->parameters[i].name)) i++;
    if (i == family->parameter_count) {
      unknown = key;
    } else if (given[i].size) {
      *part = key;
      return TWICE;
    } else {
      given[i] = value;
    }
  }
  for (int i = 0; i < family->parameter_count; i++) {
    const wlmi_parameter *parameter = &family->parameters[i];
    int place = 0;
    while (place < parameter->value_count && !(given[i].size && is_text(given[i], parameter->values[place]))) place++;
    *part = (span){parameter->name, strlen(parameter->name)};
    if (place == parameter->value_count) return NO_VALUE;
    variant->values[i] = (uint8_t)place;
  }
  *part = unknown;
  return unknown.size ? NO_PARAMETER : NONE;
}

static void put_choices(const wlmi_families *families, int family, span parameter, wlmi_text *text) {
  for (int i = 0; !family && i < families->count; i++)
    wlmi_text_printf(text, "%s%s", i ? ", " : "", families->list[i].name);
  for (int i = 0; family && i < families->list[family - 1].parameter_count; i++) {
    const wlmi_parameter *p = &families->list[family - 1].parameters[i];
    for (int k = 0; is_text(parameter, p->name) && k < p->value_count; k++)
      wlmi_text_printf(text, "%s%s", k ? ", " : "", p->values[k]);
  }
}

wlm_status wlmi_variant_parse(const wlmi_families *families, const char *name, wlmi_variant *variant) {
  span part;
  wlmi_text choices = {0};
  const fault found = read_name(families, name, variant, &part);
  const int size = (int)part.size;
  if (found == NO_FAMILY || found == NO_VALUE) put_choices(families, variant->family, part, &choices);
  const char *list = choices.data ? choices.data : "", *text = part.at;
  const wlm_status bad = WLM_ERR_INVALID_ARGUMENT;
  wlm_status status = WLM_OK;
  switch (found) {
    case NONE: break;
    case NO_FAMILY: status = wlmi_fail(bad, "'%s': no family '%.*s'; there are: %s", name, size, text, list); break;
    case NO_PAIR: status = wlmi_fail(bad, "'%s': '%.*s' is not NAME=VALUE", name, size, text); break;
    case TWICE: status = wlmi_fail(bad, "'%s': '%.*s' stands twice", name, size, text); break;
    case NO_VALUE: status = wlmi_fail(bad, "'%s': parameter '%.*s' must be one of: %s", name, size, text, list); break;
    case NO_PARAMETER:
      status = wlmi_fail(bad, "'%s': family '%s' has no parameter '%.*s'", name,
                         families->list[variant->family - 1].name, size, text);
      break;
  }
  if (status != WLM_OK) *variant = (wlmi_variant){0};
  wlmi_text_release(&choices);
  return status;
}

void wlmi_variant_recognise(const wlmi_families *families, const char *name, wlmi_variant *variant) {
  span part;
  if (!families || read_name(families, name, variant, &part) != NONE) *variant = (wlmi_variant){0};
}

/* ---- to a name ----------------------------------------------------------------------------------------- */

int wlmi_variant_print(const wlmi_families *families, const wlmi_variant *variant, char name[WLM_VARIANT_NAME]) {
  *name = 0;
  if (!variant->family) return 1;
  const wlmi_family *family = &families->list[variant->family - 1];
  int size = snprintf(name, WLM_VARIANT_NAME, "%s", family->name);
  for (int i = 0; i < family->parameter_count && size < WLM_VARIANT_NAME; i++)
    size += snprintf(name + size, (size_t)(WLM_VARIANT_NAME - size), "%c%s=%s", i ? ',' : '/',
                     family->parameters[i].name, family->parameters[i].values[variant->values[i]]);
  return size < WLM_VARIANT_NAME;
}

int wlmi_variant_integer(const wlmi_families *families, const wlmi_variant *variant, const char *name) {
  const wlmi_family *family = &families->list[variant->family - 1];
  for (int i = 0; i < family->parameter_count; i++)
    if (!strcmp(family->parameters[i].name, name)) return atoi(family->parameters[i].values[variant->values[i]]);
  return 0;
}
