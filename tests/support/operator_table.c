#include "support/operator_table.h"

#include <stdio.h>
#include <string.h>

#include "support/own.h"
#include "warploom/warploom_message.h"

enum { MOST = 32 }; /* names of one kind */

/* A set of names of one kind, for example messages; bit i stands for value i. */
typedef unsigned names_met;

typedef struct family {
  char name[WLMI_VARIANT_NAME], target[16], split[16];
  names_met messages, reductions, types, args, samplings, places; /* places: what messages are reduced over */
  int heads, transpose, sddmm, attention;
  int with_combine, without_combine, any_order; /* user-defined operators */
} family;

static const char *message_name(int i) { return wlmi_message_name((wlm_message)i); }
static const char *reduce_name(int i) { return i == WLM_CUSTOM ? NULL : wlmi_reduce_name((wlm_reduce)i); }
static const char *type_name(int i) { return wlmi_type_name((wlm_type)i); }
/* WLM_SAMPLE_NONE is left out */
static const char *sample_name(int i) { return wlmi_sample_name((wlm_sample)(i + 1)); }

/* What results of messages are over; op(A)'s rows are columns of A with transpose. */
static const char *place_name(int i) {
  static const char *const names[] = {"rows", "columns", "edges", NULL};
  return names[i];
}

static wlm_status meet_message(family *f, const wlm_problem *problem) {
  wlm_message_table table = WLM_MESSAGE_TABLE_INIT;
  const wlm_status status = wlm_message_describe(problem, &table);
  for (int i = 0; status == WLM_OK && i < table.results; i++) f->places |= 1u << table.result[i].place;
  return status;
}

static void meet_custom(family *f, const char *custom) {
  if (strstr(custom, "order=any"))
    f->any_order = 1;
  else if (strstr(custom, "combine="))
    f->with_combine = 1;
  else
    f->without_combine = 1;
}

static wlm_status meet(family *f, const wlmi_spec *spec) {
  const wlm_problem *p = &spec->problem;
  if (p->operation == WLM_MESSAGE) return meet_message(f, p);
  if (wlmi_is_attention(p)) {
    f->attention = 1;
    return WLM_OK;
  }
  f->types |= 1u << p->dense_type;
  f->heads |= p->heads > 1;
  f->transpose |= p->transpose;
  f->sddmm |= p->operation == WLM_SDDMM;
  if (p->sampling.sample != WLM_SAMPLE_NONE) f->samplings |= 1u << (p->sampling.sample - 1);
  if (p->reduce == WLM_CUSTOM) {
    meet_custom(f, spec->custom);
    return WLM_OK;
  }
  f->messages |= 1u << p->message;
  f->reductions |= 1u << p->reduce;
  if (p->want_argmax) f->args |= 1u << p->reduce;
  return WLM_OK;
}

static int is_of(const covering_entry *entry, const char *name) {
  const size_t size = strlen(name);
  return !strncmp(entry->variant, name, size) && strchr("/", entry->variant[size]);
}

/* Writes "all 8", "sum, mean" or "-". */
static void put_names(wlmi_text *table, names_met met, const char *(*name)(int)) {
  HELD(wlmi_text) words = {0};
  const char *word;
  int count = 0, found = 0;
  for (; count < MOST && (word = name(count)); count++)
    if (met >> count & 1) wlmi_text_printf(&words, "%s%s", found++ ? ", " : "", word);
  if (found == count)
    wlmi_text_printf(table, " all %d |", count);
  else
    wlmi_text_printf(table, " %s |", found && !words.failed ? words.data : "-");
}

static void put_yes(wlmi_text *table, int yes) { wlmi_text_puts(table, yes ? " yes |" : " - |"); }

static const char *users_operators(const family *f) {
  if (f->without_combine) return f->with_combine ? "all" : "without combine";
  return f->with_combine ? "with combine" : f->any_order ? "order=any" : "-";
}

static void put_family(wlmi_text *table, const family *f) {
  wlmi_text_printf(table, "| `%s` | %s | %s |", f->name, f->target, f->split);
  put_names(table, f->messages, message_name);
  put_names(table, f->reductions, reduce_name);
  wlmi_text_printf(table, " %s |", users_operators(f));
  put_names(table, f->types, type_name);
  put_names(table, f->args, reduce_name);
  put_yes(table, f->heads);
  put_yes(table, f->transpose);
  put_names(table, f->samplings, sample_name);
  put_yes(table, f->sddmm);
  put_yes(table, f->attention);
  put_names(table, f->places, place_name);
  wlmi_text_puts(table, "\n");
}

/* Parses "row_crc (cuda; splits a row: none; 8 variants)". */
static int read_family(const char *line, family *f) {
  *f = (family){0};
  const char *split = strstr(line, "splits a row: ");
  return split && sscanf(line, "%127s (%15[^;]", f->name, f->target) == 2 &&
         sscanf(split, "splits a row: %15[^;]", f->split) == 1;
}

wlm_status operator_table_write(wlmi_generator *generator, const covering sets[], int set_count, wlmi_text *table) {
  wlmi_text list = {0};
  char *rest;
  wlm_status status;
  wlmi_text_puts(table,
                 "| family | device | splits a row | messages | reductions | user-defined | types | arg | heads | "
                 "transpose | sampling | SDDMM | attention | messages over |\n"
                 "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  WLM_TRY(wlmi_generator_list(generator, &list));
  rest = list.data;
  for (char *line; (line = strtok_r(rest, "\n", &rest));) {
    family f;
    if (line[0] == ' ') continue; /* a line with its summary or a parameter */
    if (!read_family(line, &f)) WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "'%s' is no line of a family", line));
    for (int set = 0; set < set_count; set++)
      for (int64_t i = 0; i < sets[set].count; i++)
        if (is_of(&sets[set].entries[i], f.name)) WLM_TRY(meet(&f, &sets[set].entries[i].spec));
    put_family(table, &f);
  }
  if (table->failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a table");
done:
  wlmi_text_release(&list);
  return status;
}
