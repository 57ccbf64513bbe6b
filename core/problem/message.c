/* Reads messages: declarations of operands, then sums and results. Operands that are known without a declaration are
 * parsed as if they were declared, and those that no expression uses are taken out afterwards. */
#include "core/problem/message.h"

#include <ctype.h>
#include <string.h>

#include "core/problem/slice.h"

const char *const wlmi_result_kind_names[WLMI_RESULT_KINDS] = {"sum",     "mean",  "max",  "min",     "prod",
                                                               "softmax", "score", "edge", "edge_sum"};
const char *const wlmi_place_names[] = {"row", "column", "edge", "all"};
const char *const wlmi_width_names[] = {"n", "heads", "1", "wins", "base", "scale"};
enum { WIDTHS = sizeof wlmi_width_names / sizeof *wlmi_width_names };

/* In the order in which they follow the declared ones. */
static const struct known {
  const char *name;
  wlmi_message_operand operand;
} known[] = {
    {"a", {WLM_PLACE_EDGE, WLM_WIDTH_HEADS, WLMI_SOURCE_VALUES}},
    {"b", {WLM_PLACE_COLUMN, WLM_WIDTH_N, WLMI_SOURCE_MEMORY}},
    {"e", {WLM_PLACE_EDGE, WLM_WIDTH_N, WLMI_SOURCE_MEMORY}},
    {"k", {WLM_PLACE_COLUMN, WLM_WIDTH_N, WLMI_SOURCE_MEMORY}},
    {"x", {WLM_PLACE_ROW, WLM_WIDTH_N, WLMI_SOURCE_MEMORY}},
    {"y", {WLM_PLACE_ROW, WLM_WIDTH_N, WLMI_SOURCE_MEMORY}},
    {"degree", {WLM_PLACE_ROW, WLM_WIDTH_ONE, WLMI_SOURCE_DEGREE}},
    {"kept", {WLM_PLACE_EDGE, WLM_WIDTH_HEADS, WLMI_SOURCE_KEPT}},
};
enum { KNOWN = sizeof known / sizeof *known, DECLARED = WLM_MAX_OPERANDS, TABLE = KNOWN + DECLARED + WLMI_MAX_SUMS };
_Static_assert((int)TABLE <= (int)WLMI_EXPRESSION_NAMES, "expressions may name all of them");

/* Names under which results are parsed: the declared operands, the known ones that were not declared, and the sums. */
typedef struct table {
  char name[TABLE][WLM_OPERAND_NAME];
  const char *names[TABLE];
  wlmi_message_operand operand[TABLE];
  int count, declared, operands; /* operands = count without the sums */
  unsigned int as_known;         /* those of the known ones that are declared as they are anyway */
} table;

/* Takes what stands before the first `separator`. */
static wlmi_slice cut(wlmi_slice *rest, char separator) {
  const char *end = rest->size ? memchr(rest->text, separator, rest->size) : NULL;
  const wlmi_slice first = {rest->text, end ? (size_t)(end - rest->text) : rest->size};
  const size_t used = first.size + (end != NULL);
  *rest = (wlmi_slice){rest->text + used, rest->size - used};
  return wlmi_slice_trim(first);
}

/* The index of the operand that is known by this name; -1 = there is none. */
static int find_known(wlmi_slice name) {
  for (int i = 0; i < KNOWN; i++)
    if (wlmi_slice_is(name, known[i].name)) return i;
  return -1;
}

static int is_same(const wlmi_message_operand *a, const wlmi_message_operand *b) {
  return a->place == b->place && a->width == b->width;
}

int wlmi_result_is_of_row(wlmi_result_kind kind) { return kind < WLMI_RESULT_EDGE; }
int wlmi_result_is_extreme(wlmi_result_kind kind) { return kind == WLMI_RESULT_MAX || kind == WLMI_RESULT_MIN; }

static int is_operand_name(wlmi_slice name) {
  if (!name.size || name.size >= WLM_OPERAND_NAME || isdigit((unsigned char)name.text[0])) return 0;
  for (size_t i = 0; i < name.size; i++)
    if (!isalnum((unsigned char)name.text[i]) && name.text[i] != '_') return 0;
  for (int i = 0; i < WLMI_FUNCTIONS; i++)
    if (wlmi_slice_is(name, wlmi_functions[i].name)) return 0;
  return !wlmi_slice_is(name, "inf") && !wlmi_slice_is(name, "INFINITY");
}

/* Shortened for messages, without what is not printable. */
static const char *shown(wlmi_slice s, char *to, size_t capacity) {
  const size_t size = s.size < capacity - 1 ? s.size : capacity - 1;
  for (size_t i = 0; i < size; i++) to[i] = (char)(isprint((unsigned char)s.text[i]) ? s.text[i] : '?');
  to[size] = 0;
  return to;
}

static void add_operand(table *t, wlmi_slice name, wlmi_message_operand operand) {
  memcpy(t->name[t->count], name.text, name.size);
  t->name[t->count][name.size] = 0;
  t->names[t->count] = t->name[t->count];
  t->operand[t->count++] = operand;
}

/* NAME:PLACE[:WIDTH] */
static wlm_status declare(wlmi_slice part, table *t) {
  char text[64];
  wlmi_slice rest = part;
  const wlmi_slice name = cut(&rest, ':'), place_text = cut(&rest, ':'), width_text = wlmi_slice_trim(rest);
  if (!is_operand_name(name))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "op: '%s' is no name for an operand; a name has letters, digits and _, at most %d, and is no "
                     "function",
                     shown(name, text, sizeof text), WLM_OPERAND_NAME - 1);
  const int place = wlmi_slice_index(place_text, wlmi_place_names, 4);
  if (place < 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "op: operand %.*s: '%s' is no place; places are row, column, edge and all", (int)name.size,
                     name.text, shown(place_text, text, sizeof text));
  const int width = width_text.size ? wlmi_slice_index(width_text, wlmi_width_names, WIDTHS) : WLM_WIDTH_N;
  if (width < 0 || (place != WLM_PLACE_ROW && width >= WLM_WIDTH_WINS))
    return wlmi_fail(
        WLM_ERR_INVALID_ARGUMENT,
        "op: operand %.*s: '%s' is no width of %s; widths are n, heads and 1, and wins, base and scale for a row",
        (int)name.size, name.text, shown(width_text, text, sizeof text), wlmi_place_names[place]);
  const wlmi_message_operand operand = {
      (wlm_place)place, (wlm_width)width,
      place == WLM_PLACE_ALL && width == WLM_WIDTH_ONE ? WLMI_SOURCE_NUMBER : WLMI_SOURCE_MEMORY};
  const int k = find_known(name);
  if (wlmi_slice_index(name, t->names, t->count) >= 0 || (k >= 0 && t->as_known & 1u << k))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op: operand %.*s is declared twice; declare it once", (int)name.size,
                     name.text);
  if (k >= 0 && is_same(&known[k].operand, &operand)) { /* as it is anyway */
    t->as_known |= 1u << k;
    return WLM_OK;
  }
  if (k >= 0 && known[k].operand.source != WLMI_SOURCE_MEMORY)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op: operand %s is %s:%s and nothing else; use another name",
                     known[k].name, wlmi_place_names[known[k].operand.place], wlmi_width_names[known[k].operand.width]);
  if (t->count == DECLARED)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op: more than %d operands; leave some out", WLM_MAX_OPERANDS);
  add_operand(t, name, operand);
  return WLM_OK;
}

static void add_known(table *t) {
  t->declared = t->count;
  for (int i = 0; i < KNOWN; i++) {
    const wlmi_slice name = {known[i].name, strlen(known[i].name)};
    if (wlmi_slice_index(name, t->names, t->declared) < 0) add_operand(t, name, known[i].operand);
  }
  t->operands = t->count;
}

/* A score is one number for an edge and head. */
static wlm_status check_score(const wlmi_message *message, const table *t, const wlmi_expression *value) {
  if (wlmi_message_score(message) >= 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op: there is more than one score; a message has one");
  for (int i = 0; i < t->operands; i++)
    if ((t->operand[i].width == WLM_WIDTH_N || t->operand[i].width == WLM_WIDTH_WINS) && wlmi_expression_uses(value, i))
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                       "op:score: operand %s has a number for each column, and a score is one for a head; use a sum "
                       "over the columns, such as s:edge_sum=%s",
                       t->name[i], t->name[i]);
  return WLM_OK;
}

/* KIND=EXPRESSION */
static wlm_status parse_result(wlmi_slice part, const table *t, wlmi_message *message) {
  char text[64];
  wlmi_slice rest = part;
  const wlmi_slice name = cut(&rest, '=');
  const int kind = wlmi_slice_index(name, wlmi_result_kind_names, WLMI_RESULT_KINDS);
  if (kind < 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "op: '%s' is no result; results are sum, mean, max, min, prod, softmax, score, edge and edge_sum, "
                     "each as KIND=EXPRESSION, and operands are NAME:PLACE, separated by ';'",
                     shown(name, text, sizeof text));
  if (message->results == WLM_MAX_RESULTS)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op: more than %d results; leave some out", WLM_MAX_RESULTS);
  if (kind == WLMI_RESULT_SOFTMAX && wlmi_message_score(message) < 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op: softmax needs a score before it: 'score=EXPRESSION;softmax=...'");
  wlmi_message_result *result = &message->result[message->results];
  wlm_status status = wlmi_expression_parse_named(wlmi_result_kind_names[kind], rest.text, rest.size, t->names,
                                                  t->count, &result->value);
  if (status == WLM_OK && kind == WLMI_RESULT_SCORE) status = check_score(message, t, &result->value);
  if (status != WLM_OK) return status; /* the message releases what was parsed */
  result->kind = (wlmi_result_kind)kind;
  message->results++;
  return WLM_OK;
}

/* NAME:edge_sum=EXPRESSION */
static wlm_status parse_sum(wlmi_slice part, table *t, wlmi_message *message) {
  char text[64];
  wlmi_slice rest = part;
  const wlmi_slice name = cut(&rest, ':');
  cut(&rest, '=');
  if (!is_operand_name(name) || wlmi_slice_index(name, t->names, t->count) >= 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "op: '%s' is no name for a sum, or that of something else; use another one",
                     shown(name, text, sizeof text));
  if (message->sums == WLMI_MAX_SUMS)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op: more than %d sums; leave some out", WLMI_MAX_SUMS);
  const wlm_status status =
      wlmi_expression_parse_named("edge_sum", rest.text, rest.size, t->names, t->count, &message->sum[message->sums]);
  if (status != WLM_OK) return status;
  message->sums++;
  add_operand(t, name, (wlmi_message_operand){WLM_PLACE_EDGE, WLM_WIDTH_HEADS, WLMI_SOURCE_MEMORY});
  return WLM_OK;
}

static int is_used(const wlmi_message *message, int operand) {
  for (int i = 0; i < message->sums; i++)
    if (wlmi_expression_uses(&message->sum[i], operand)) return 1;
  for (int r = 0; r < message->results; r++)
    if (wlmi_expression_uses(&message->result[r].value, operand)) return 1;
  return 0;
}

static void rename_operands(const wlmi_message *message, const int *place_of, wlmi_expression *value) {
  value->names = message->names;
  for (int i = 0; i < value->count; i++)
    if (value->nodes[i].kind == WLMI_NODE_OPERAND) value->nodes[i].which = place_of[value->nodes[i].which];
}

/* Keeps the operands that are used, and makes the expressions point to them. */
static wlm_status keep_used(const table *t, wlmi_message *message) {
  int place_of[TABLE];
  for (int i = 0; i < t->count; i++) {
    place_of[i] = -1;
    if (!is_used(message, i)) {
      if (i >= t->declared && i < t->operands) continue;
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op: %s %s is declared and not used; leave it out",
                       i < t->operands ? "operand" : "the sum", t->name[i]);
    }
    const int is_sum = i >= t->operands;
    if (!is_sum && message->operands == WLM_MAX_OPERANDS)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op: more than %d operands; leave some out", WLM_MAX_OPERANDS);
    const int at = place_of[i] = is_sum ? message->operands + i - t->operands : message->operands++;
    memcpy(message->name[at], t->name[i], WLM_OPERAND_NAME);
    message->names[at] = message->name[at];
    if (!is_sum) message->operand[at] = t->operand[i];
  }
  for (int i = 0; i < message->sums; i++) rename_operands(message, place_of, &message->sum[i]);
  for (int r = 0; r < message->results; r++) rename_operands(message, place_of, &message->result[r].value);
  return WLM_OK;
}

/* Whether a part is a sum: NAME:edge_sum= */
static int is_sum(wlmi_slice part) {
  cut(&part, ':');
  const size_t size = part.size ? strcspn(part.text, "=:;") : 0;
  return size < part.size && part.text[size] == '=' &&
         wlmi_slice_is(wlmi_slice_trim((wlmi_slice){part.text, size}), wlmi_result_kind_names[WLMI_RESULT_EDGE_SUM]);
}

static wlm_status parse_parts(wlmi_slice rest, table *t, wlmi_message *message) {
  while (rest.size) {
    const wlmi_slice part = cut(&rest, ';');
    if (!part.size && !wlmi_slice_trim(rest).size) break; /* a ';' at the end */
    const size_t before = part.size ? strcspn(part.text, ":=;") : 0;
    const int is_result = before >= part.size || part.text[before] == '=', names_sum = !is_result && is_sum(part);
    const int is_operand = !is_result && !names_sum;
    if (is_operand && t->declared >= 0)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op: an operand is declared behind a result; declare operands first");
    if (!is_operand && t->declared < 0) add_known(t);
    WLM_CHECK(is_result ? parse_result(part, t, message) : names_sum ? parse_sum(part, t, message) : declare(part, t));
  }
  if (!message->results)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op: there is no result; the least message is 'sum=b'");
  return keep_used(t, message);
}

wlm_status wlmi_message_parse(const char *text, wlmi_message *message) {
  table t = {.declared = -1};
  *message = (wlmi_message){0};
  const wlm_status status = parse_parts((wlmi_slice){text, strlen(text)}, &t, message);
  if (status != WLM_OK) wlmi_message_release(message);
  return status;
}

int wlmi_message_has_edge_lines(const wlmi_message *message) {
  for (int i = 0; i < message->operands; i++)
    if (message->operand[i].place == WLM_PLACE_EDGE && message->operand[i].width == WLM_WIDTH_N) return 1;
  for (int r = 0; r < message->results; r++)
    if (message->result[r].kind == WLMI_RESULT_EDGE) return 1;
  return 0;
}

int wlmi_width_is_pair(wlm_width width) { return width == WLM_WIDTH_BASE || width == WLM_WIDTH_SCALE; }

int64_t wlmi_width_columns(const wlm_problem *p, wlm_width width) {
  if (wlmi_width_is_pair(width)) return 2 * p->heads;
  return width == WLM_WIDTH_HEADS ? p->heads : width == WLM_WIDTH_ONE ? 1 : p->n;
}

wlm_width wlmi_result_width(wlmi_result_kind kind) {
  return kind == WLMI_RESULT_SCORE ? WLM_WIDTH_BASE : kind == WLMI_RESULT_EDGE_SUM ? WLM_WIDTH_HEADS : WLM_WIDTH_N;
}

int wlmi_message_score(const wlmi_message *message) {
  for (int r = 0; r < message->results; r++)
    if (message->result[r].kind == WLMI_RESULT_SCORE) return r;
  return -1;
}

void wlmi_message_release(wlmi_message *message) {
  for (int i = 0; i < WLMI_MAX_SUMS; i++) wlmi_expression_release(&message->sum[i]);
  for (int r = 0; r < WLM_MAX_RESULTS; r++) wlmi_expression_release(&message->result[r].value);
  *message = (wlmi_message){0};
}

static int is_known(const wlmi_message *message, int operand) {
  const int k = find_known((wlmi_slice){message->name[operand], strlen(message->name[operand])});
  return k >= 0 && is_same(&known[k].operand, &message->operand[operand]);
}

void wlmi_message_print(const wlmi_message *message, wlmi_text *text) {
  for (int i = 0; i < message->operands; i++) {
    const wlmi_message_operand *o = &message->operand[i];
    if (is_known(message, i)) continue;
    wlmi_text_printf(text, "%s:%s", message->name[i], wlmi_place_names[o->place]);
    if (o->width != WLM_WIDTH_N) wlmi_text_printf(text, ":%s", wlmi_width_names[o->width]);
    wlmi_text_puts(text, ";");
  }
  for (int i = 0; i < message->sums; i++) {
    wlmi_text_printf(text, "%s:edge_sum=", message->name[message->operands + i]);
    wlmi_expression_print(&message->sum[i], WLMI_SPELL_NORMAL, text);
    wlmi_text_puts(text, ";");
  }
  for (int r = 0; r < message->results; r++) {
    wlmi_text_printf(text, "%s%s=", r ? ";" : "", wlmi_result_kind_names[message->result[r].kind]);
    wlmi_expression_print(&message->result[r].value, WLMI_SPELL_NORMAL, text);
  }
}
