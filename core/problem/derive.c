/* Derivatives of expressions, as text. The derivative of a sum, product or quotient follows from those of its operands;
 * that of a function from wlmi_functions. Terms that are 0 are left out, and so are factors of 1. */
#include <string.h>

#include "core/problem/message.h"
#include "core/problem/slice.h"

static void derive(const wlmi_expression *e, int at, int operand, wlmi_text *text);

static void print_rule(const wlmi_expression *e, int at, const char *rule, wlmi_text *text) {
  int in[3] = {0};
  wlmi_expression_operands(e, at, in);
  for (const char *c = rule; *c; c++) {
    if (*c != '$')
      wlmi_text_printf(text, "%c", *c);
    else if (*++c == 'f')
      wlmi_expression_print_node(e, at, text);
    else
      wlmi_expression_print_node(e, in[*c - '0'], text);
  }
}

static int is_one(const wlmi_text *text) { return text->size == 1 && text->data[0] == '1'; }

/* Begins another term of a sum. */
static void plus(wlmi_text *text) {
  if (text->size) wlmi_text_puts(text, "+");
}

/* Adds factor * inner; the factor is a rule. */
static void add_product(const wlmi_expression *e, int at, const char *rule, const wlmi_text *inner, wlmi_text *text) {
  const int is_plain = !strcmp(rule, "1");
  text->failed |= inner->failed;
  if (!inner->size || !strcmp(rule, "0")) return;
  plus(text);
  if (!is_plain) {
    wlmi_text_puts(text, "(");
    print_rule(e, at, rule, text);
    wlmi_text_puts(text, is_one(inner) ? ")" : ")*");
  }
  if (is_plain || !is_one(inner)) wlmi_text_printf(text, is_one(inner) ? "%s" : "(%s)", inner->data);
}

static void derive_operation(const wlmi_expression *e, int at, wlmi_text parts[3], wlmi_text *text) {
  int in[3] = {0};
  wlmi_expression_operands(e, at, in);
  switch (e->nodes[at].which) {
    case WLMI_NEGATE: add_product(e, at, "-1", &parts[0], text); break;
    case WLMI_PLUS:
      add_product(e, at, "1", &parts[0], text);
      add_product(e, at, "1", &parts[1], text);
      break;
    case WLMI_MINUS:
      add_product(e, at, "1", &parts[0], text);
      add_product(e, at, "-1", &parts[1], text);
      break;
    case WLMI_MULTIPLY:
      add_product(e, at, "$1", &parts[0], text);
      add_product(e, at, "$0", &parts[1], text);
      break;
    case WLMI_DIVIDE: /* divides twice: the square of a divisor may be out of range where the quotient is not */
      add_product(e, at, "1/$1", &parts[0], text);
      add_product(e, at, "-$0/$1/$1", &parts[1], text);
      break;
    case WLMI_CHOOSE:
      text->failed |= parts[1].failed | parts[2].failed;
      if (!parts[1].size && !parts[2].size) break;
      wlmi_text_puts(text, "(");
      wlmi_expression_print_node(e, in[0], text);
      wlmi_text_printf(text, "?%s:%s)", parts[1].size ? parts[1].data : "0", parts[2].size ? parts[2].data : "0");
      break;
    default: break; /* truth values are constant but for their steps */
  }
}

/* Appends the derivative of the subtree that ends at `at`; nothing where it is 0. */
static void derive(const wlmi_expression *e, int at, int operand, wlmi_text *text) {
  const wlmi_node *node = &e->nodes[at];
  wlmi_text parts[3] = {{0}};
  int in[3] = {0};
  if (node->kind == WLMI_NODE_OPERAND && node->which == operand) wlmi_text_puts(text, "1");
  if (node->kind == WLMI_NODE_OPERAND || node->kind == WLMI_NODE_NUMBER) return;
  wlmi_expression_operands(e, at, in);
  for (int i = 0; i < node->arity; i++) derive(e, in[i], operand, &parts[i]);
  if (node->kind == WLMI_NODE_FUNCTION)
    for (int i = 0; i < node->arity; i++) add_product(e, at, wlmi_functions[node->which].by[i], &parts[i], text);
  else
    derive_operation(e, at, parts, text);
  for (int i = 0; i < 3; i++) wlmi_text_release(&parts[i]);
}

wlm_status wlmi_expression_derive(const wlmi_expression *expression, int operand, wlmi_text *text) {
  derive(expression, expression->count - 1, operand, text);
  return text->failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a derivative") : WLM_OK;
}

/* ---- the gradient of a message ---------------------------------------------------------------------------- */

/* A name that the message does not use: the letter as often as that takes, then the result's number. */
static void new_name(const wlmi_message *message, char letter, int result, char name[2 * WLM_OPERAND_NAME]) {
  for (int letters = 1;; letters++) {
    int taken = 0;
    memset(name, letter, (size_t)letters);
    snprintf(name + letters, 2 * WLM_OPERAND_NAME - (size_t)letters, "%d", result);
    for (int i = 0; i < message->operands + message->sums; i++) taken |= !strcmp(message->name[i], name);
    if (!taken) return;
  }
}

/* The product of the other messages of a row. It follows from p, the product of those that are not 0, and z, how many
 * are 0. */
static void print_others(const wlmi_message *message, int r, wlmi_text *text) {
  const wlmi_expression *value = &message->result[r].value;
  char p[2 * WLM_OPERAND_NAME], z[2 * WLM_OPERAND_NAME];
  new_name(message, 'p', r, p);
  new_name(message, 'z', r, z);
  wlmi_text_printf(text, "*(%s==0?%s/", z, p);
  wlmi_expression_print_node(value, value->count - 1, text);
  wlmi_text_printf(text, ":%s==1&&", z);
  wlmi_expression_print_node(value, value->count - 1, text);
  wlmi_text_printf(text, "==0?%s:0)", p);
}

/* The weight of an edge in the softmax. */
static void print_weight(const wlmi_message *message, int score, wlmi_text *text) {
  const wlmi_expression *value = &message->result[score].value;
  char base[2 * WLM_OPERAND_NAME], scale[2 * WLM_OPERAND_NAME];
  new_name(message, 'l', score, base);
  new_name(message, 's', score, scale);
  wlmi_text_puts(text, "expscale(");
  wlmi_expression_print_node(value, value->count - 1, text);
  wlmi_text_printf(text, ",%s,%s)", base, scale);
}

/* The factors that come from behind the message: the gradient by the result, and how the message takes part in it. Of a
 * score they are the gradients by the results that have its weights: each edge pulls its row towards its message. */
static void print_upstream(const wlmi_message *message, int r, int64_t most_edges, wlmi_text *text) {
  const wlmi_result_kind kind = message->result[r].kind;
  char name[2 * WLM_OPERAND_NAME], mean[2 * WLM_OPERAND_NAME];
  wlmi_text terms = {0};
  if (kind == WLMI_RESULT_SCORE) {
    for (int i = r + 1; i < message->results; i++) {
      const wlmi_expression *value = &message->result[i].value;
      if (message->result[i].kind != WLMI_RESULT_SOFTMAX) continue;
      new_name(message, 'd', i, name);
      new_name(message, 'c', i, mean);
      plus(&terms);
      wlmi_text_printf(&terms, "%s*(", name);
      wlmi_expression_print_node(value, value->count - 1, &terms);
      wlmi_text_printf(&terms, "-%s)", mean);
    }
    print_weight(message, r, text);
    wlmi_text_printf(text, "*(%s)", terms.size ? terms.data : "0");
    text->failed |= terms.failed;
    wlmi_text_release(&terms);
    return;
  }
  new_name(message, 'd', r, name);
  wlmi_text_puts(text, name);
  if (kind == WLMI_RESULT_MEAN && most_edges)
    wlmi_text_printf(text, "*(1/fmin(degree,%lld))", (long long)most_edges);
  else if (kind == WLMI_RESULT_MEAN)
    wlmi_text_puts(text, "*(1/degree)");
  if (kind == WLMI_RESULT_PROD) print_others(message, r, text);
  if (kind == WLMI_RESULT_SOFTMAX) {
    wlmi_text_puts(text, "*");
    print_weight(message, wlmi_message_score(message), text);
  }
  if (!wlmi_result_is_extreme(kind)) return;
  new_name(message, 'w', r, name);
  wlmi_text_printf(text, "*%s", name);
}

/* Adds the derivative of an expression by an operand or a sum, times what `upstream` says. */
static wlm_status add_derivative(const wlmi_expression *value, int by, const char *upstream, wlmi_text *sum) {
  wlmi_text slope = {0};
  wlm_status status = wlmi_expression_derive(value, by, &slope);
  if (status == WLM_OK && slope.size) {
    plus(sum);
    wlmi_text_puts(sum, upstream);
    if (!is_one(&slope)) wlmi_text_printf(sum, "*(%s)", slope.data);
    if (sum->failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a gradient");
  }
  wlmi_text_release(&slope);
  return status;
}

/* The gradient by an operand or a sum: through each result, and through the sums that read it. Their gradients are sums
 * of the gradient's message. */
static wlm_status add_terms(const wlmi_message *message, int by, int64_t most_edges, wlmi_text *sum) {
  wlm_status status = WLM_OK;
  for (int r = 0; r < message->results && status == WLM_OK; r++) {
    wlmi_text upstream = {0};
    print_upstream(message, r, most_edges, &upstream);
    sum->failed |= upstream.failed;
    if (!upstream.failed) status = add_derivative(&message->result[r].value, by, upstream.data, sum);
    wlmi_text_release(&upstream);
  }
  for (int i = 0; i < message->sums && status == WLM_OK; i++) {
    char name[2 * WLM_OPERAND_NAME];
    new_name(message, 'g', i, name);
    status = add_derivative(&message->sum[i], by, name, sum);
  }
  return status;
}

/* Whether a text has a name as a word. */
static int mentions(const wlmi_text *text, const char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  const size_t size = strlen(name);
  for (const char *at = text->size ? text->data : ""; (at = strpbrk(at, letters)) != NULL;) {
    const size_t word = strspn(at, letters);
    if (word == size && !memcmp(at, name, size)) return 1;
    at += word;
  }
  return 0;
}

/* Declares what a result brings along, as far as the body uses it: an operand must not be declared in vain. */
static void declare_upstream(const wlmi_message *message, int r, const wlmi_text *body, wlmi_text *text) {
  const wlmi_result_kind kind = message->result[r].kind;
  const struct {
    char letter;
    const char *as;
  } candidates[] = {{'d', kind == WLMI_RESULT_EDGE       ? "edge"
                          : kind == WLMI_RESULT_EDGE_SUM ? "edge:heads"
                                                         : "row"},
                    {'p', "row"},
                    {'z', "row"},
                    {'w', "row:wins"},
                    {'c', "row"},
                    {'l', "row:base"},
                    {'s', "row:scale"}};
  for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
    char name[2 * WLM_OPERAND_NAME];
    new_name(message, candidates[i].letter, r, name);
    if (mentions(body, name)) wlmi_text_printf(text, "%s:%s;", name, candidates[i].as);
  }
}

static wlm_status check_places(const wlmi_message *message, const int *by, int count, int *transpose) {
  int rows = 0, columns = 0;
  for (int i = 0; i < count; i++) {
    const wlmi_message_operand *o = &message->operand[by[i]];
    if (o->place == WLM_PLACE_ALL || o->source == WLMI_SOURCE_DEGREE || o->source == WLMI_SOURCE_KEPT ||
        o->width >= WLM_WIDTH_WINS)
      return wlmi_fail(WLM_ERR_UNSUPPORTED,
                       "wlm_message_gradient: by %s, which has no place; only operands of rows, "
                       "columns and edges have gradients",
                       message->name[by[i]]);
    rows += o->place == WLM_PLACE_ROW;
    columns += o->place == WLM_PLACE_COLUMN;
  }
  if (rows && columns)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "wlm_message_gradient: operands of rows and of columns need two walks; "
                     "ask for them one after the other");
  *transpose = columns > 0;
  return WLM_OK;
}

static wlm_status find_operands(const wlmi_message *message, const char *list, int by[WLM_MAX_RESULTS], int *count) {
  *count = 0;
  for (const char *at = list; *at; at += strspn(at, ", ")) {
    const size_t size = strcspn(at, ", ");
    const int found = wlmi_slice_index((wlmi_slice){at, size}, message->names, message->operands);
    if (found < 0)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_message_gradient: '%.*s' is no operand of the message",
                       (int)(size > 40 ? 40 : size), at);
    if (*count == WLM_MAX_RESULTS)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_message_gradient: more than %d operands; ask for fewer at once",
                       WLM_MAX_RESULTS);
    by[(*count)++] = found;
    at += size;
  }
  return *count ? WLM_OK : wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_message_gradient: `by` names no operand");
}

/* Puts a sum before the text, and releases its value. */
static void prepend_sum(const char *name, wlmi_text *value, wlmi_text *text) {
  wlmi_text whole = {0};
  wlmi_text_printf(&whole, "%s:edge_sum=%s;%s", name, value->size ? value->data : "0", text->size ? text->data : "");
  whole.failed |= value->failed | text->failed;
  wlmi_text_release(value);
  wlmi_text_release(text);
  *text = whole;
}

/* The results of a gradient, and before them the sums that they need: the gradients by sums, of which one may need
 * those by later ones, and the message's own. */
static wlm_status print_body(const wlmi_message *message, const int *by, int count, int64_t most_edges,
                             wlmi_text *body) {
  wlm_status status = WLM_OK;
  for (int i = 0; i < count && status == WLM_OK; i++) {
    const wlmi_message_operand *o = &message->operand[by[i]];
    wlmi_text sum = {0};
    status = add_terms(message, by[i], most_edges, &sum);
    wlmi_text_printf(body, "%s%s=%s", i ? ";" : "",
                     o->place != WLM_PLACE_EDGE ? "sum"
                     : o->width == WLM_WIDTH_N  ? "edge"
                                                : "edge_sum",
                     sum.size ? sum.data : "0");
    body->failed |= sum.failed;
    wlmi_text_release(&sum);
  }
  for (int i = 0; i < message->sums && status == WLM_OK; i++) {
    wlmi_text sum = {0};
    char name[2 * WLM_OPERAND_NAME];
    new_name(message, 'g', i, name);
    if (!mentions(body, name)) continue;
    status = add_terms(message, message->operands + i, most_edges, &sum);
    prepend_sum(name, &sum, body);
  }
  for (int i = message->sums - 1; i >= 0 && status == WLM_OK; i--) {
    wlmi_text value = {0};
    const char *name = message->name[message->operands + i];
    if (!mentions(body, name)) continue;
    wlmi_expression_print(&message->sum[i], WLMI_SPELL_NORMAL, &value);
    prepend_sum(name, &value, body);
  }
  return status;
}

/* A sample that may take an edge repeatedly has no one winner. */
static wlm_status check_winners(const wlmi_message *message, const wlmi_text *body, wlm_sample sample) {
  for (int r = 0; r < message->results && sample == WLM_SAMPLE_FASTRAND; r++) {
    char name[2 * WLM_OPERAND_NAME];
    new_name(message, 'w', r, name);
    if (wlmi_result_is_extreme(message->result[r].kind) && mentions(body, name))
      return wlmi_fail(WLM_ERR_UNSUPPORTED,
                       "wlm_message_gradient: of a %s with the sample fastrand, which may take the winner "
                       "repeatedly; use fastrand_coprime",
                       wlmi_result_kind_names[message->result[r].kind]);
  }
  return WLM_OK;
}

static wlm_status print_gradient(const wlmi_message *message, const int *by, int count, const wlm_sampling *sampling,
                                 wlmi_text *text) {
  const int64_t most_edges = sampling->sample == WLM_SAMPLE_NONE ? 0 : sampling->width; /* of a row; 0 = all */
  wlmi_text body = {0};
  wlm_status status = print_body(message, by, count, most_edges, &body);
  for (int i = 0; i < message->operands; i++) {
    const wlmi_message_operand *o = &message->operand[i];
    if (o->source != WLMI_SOURCE_VALUES && o->source != WLMI_SOURCE_DEGREE && mentions(&body, message->name[i]))
      wlmi_text_printf(text, "%s:%s:%s;", message->name[i], wlmi_place_names[o->place], wlmi_width_names[o->width]);
  }
  for (int r = 0; r < message->results; r++) declare_upstream(message, r, &body, text);
  if (body.size) wlmi_text_puts(text, body.data);
  text->failed |= body.failed;
  if (status == WLM_OK && text->failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a gradient");
  if (status == WLM_OK) status = check_winners(message, &body, sampling->sample);
  wlmi_text_release(&body);
  return status;
}

wlm_status wlmi_message_gradient(const wlmi_message *message, const char *list, const wlm_sampling *sampling,
                                 wlmi_text *text, int *transpose) {
  int by[WLM_MAX_RESULTS], count;
  wlmi_text raw = {0};
  wlmi_message gradient = {0};
  wlm_status status;
  WLM_TRY(find_operands(message, list, by, &count));
  WLM_TRY(check_places(message, by, count, transpose));
  WLM_TRY(print_gradient(message, by, count, sampling, &raw));
  WLM_TRY(wlmi_message_parse(raw.data, &gradient));
  wlmi_message_print(&gradient, text); /* without needless parentheses */
  if (text->failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a gradient");
done:
  wlmi_text_release(&raw);
  wlmi_message_release(&gradient);
  return status;
}
