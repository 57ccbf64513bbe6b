/* Cuts a source into items: directives, and declarations up to their ';' or the end of their body. A declaration
 * declares the names before one of "([=;{,:" outside of brackets, and the constants of an enum. Kept are the kernels
 * and the items of which it is not known what they declare, such as those that begin with a macro; then all items that
 * declare a name that a kept item mentions, and the #if around what is kept. So too much may be kept, but never too
 * little. */
#include "generator/kernel_hash.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/problem/slice.h"

enum { NONE = -1, MOST_NESTED = 16 };

typedef struct item {
  wlmi_slice piece;
  int64_t group;  /* the first item of the #if that this item is part of, or lies in; NONE */
  int64_t around; /* of an #if: the first item of the one around it; NONE */
  int is_conditional, is_kept;
} item;

typedef struct name {
  wlmi_slice word;
  int64_t item;
} name;

typedef struct cut {
  item *items;
  name *names;
  int64_t *queue; /* kept items of which the words were not looked up yet are the last ones */
  int64_t count, capacity, name_count, name_capacity, queued;
  int64_t open[MOST_NESTED]; /* the first items of the #if that are not closed */
  int depth;
} cut;

/* ---- plain text: white space and comments become one blank ----------------------------------------------- */

static int is_letter(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static int is_digit(char c) { return c >= '0' && c <= '9'; }

static const char *end_of_word(const char *at) {
  while (is_letter(*at) || is_digit(*at)) at++;
  return at;
}

static const char *end_of_literal(const char *at) {
  const char quote = *at++;
  while (*at && *at != quote) at += *at == '\\' && at[1] ? 2 : 1;
  return *at ? at + 1 : at;
}

/* A token is a word, a literal or one other character. */
static const char *end_of_token(const char *at) {
  if (*at == '"' || *at == '\'') return end_of_literal(at);
  const char *end = end_of_word(at);
  return end > at || !*at ? end : at + 1;
}

static const char *end_of_line(const char *at) { return at + strcspn(at, "\n"); }

/* Behind the blanks and comments that begin at `at`. A directive ends with its line unless a backslash continues it. */
static const char *end_of_blanks(const char *at, int in_directive) {
  for (;;) {
    if (*at == '\\' && at[1] == '\n')
      at += 2;
    else if (*at && strchr(" \t\r\n", *at) && !(in_directive && *at == '\n'))
      at++;
    else if (*at == '/' && at[1] == '/')
      at = end_of_line(at);
    else if (*at == '/' && at[1] == '*') {
      const char *end = strstr(at + 2, "*/");
      at = end ? end + 2 : at + strlen(at);
    } else
      return at;
  }
}

/* Each directive but #line stands on a line of its own; there are no other line ends. */
static void append_plain(const char *at, wlmi_text *out) {
  int in_directive = 0;
  for (const char *begin = at; *at;) {
    const char *end = end_of_blanks(at, in_directive);
    const int begins_line = at == begin || (end > at && memchr(at, '\n', (size_t)(end - at))) || at[-1] == '\n';
    if (in_directive && (!*end || *end == '\n')) {
      wlmi_text_puts(out, "\n");
      in_directive = 0;
      at = *end ? end + 1 : end;
    } else if (*end == '#' && begins_line && !in_directive) {
      in_directive = strncmp(end, "#line", 5) != 0;
      if (in_directive) wlmi_text_puts(out, out->size && out->data[out->size - 1] != '\n' ? "\n#" : "#");
      at = in_directive ? end + 1 : end_of_line(end);
    } else {
      if (end > at && *end && out->size && out->data[out->size - 1] != '\n') wlmi_text_puts(out, " ");
      at = end_of_token(end);
      wlmi_text_append(out, end, (size_t)(at - end));
    }
  }
  if (in_directive) wlmi_text_puts(out, "\n");
}

/* ---- items of plain text ------------------------------------------------------------------------------------ */

static int compare_names(const void *left, const void *right) {
  const wlmi_slice *a = &((const name *)left)->word, *b = &((const name *)right)->word;
  if (a->size != b->size) return a->size < b->size ? -1 : 1;
  return memcmp(a->text, b->text, a->size);
}

static wlm_status add_name(cut *c, wlmi_slice word) {
  const wlm_status status =
      wlmi_grow((void **)&c->names, c->name_count, &c->name_capacity, sizeof *c->names, "names of a kernel");
  if (status == WLM_OK) c->names[c->name_count++] = (name){word, c->count};
  return status;
}

static wlm_status add_item(cut *c, const char *begin, const char *end, int is_root) {
  const wlm_status status =
      wlmi_grow((void **)&c->items, c->count, &c->capacity, sizeof *c->items, "declarations of a kernel");
  if (status == WLM_OK)
    c->items[c->count++] = (item){.piece = {begin, (size_t)(end - begin)},
                                  .group = c->depth ? c->open[c->depth - 1] : NONE,
                                  .around = NONE,
                                  .is_kept = is_root};
  return status;
}

/* *whole becomes 0 if an #if is nested too deeply or not begun. */
static wlm_status add_directive(cut *c, const char *begin, const char *end, int *whole) {
  const char *first = begin + 1 + strspn(begin + 1, " "), *second = end_of_word(first);
  const wlmi_slice kind = {first, (size_t)(second - first)};
  const int opens = kind.size > 1 && !memcmp(kind.text, "if", 2), closes = wlmi_slice_is(kind, "endif");
  const int conditional = opens || closes || wlmi_slice_is(kind, "else") || wlmi_slice_is(kind, "elif");
  const int names = wlmi_slice_is(kind, "define") || wlmi_slice_is(kind, "undef");
  if (opens && c->depth == MOST_NESTED) *whole = 0;
  if (conditional && !opens && !c->depth) *whole = 0;
  if (!*whole) return WLM_OK;
  second += strspn(second, " ");
  if (names) WLM_CHECK(add_name(c, (wlmi_slice){second, (size_t)(end_of_word(second) - second)}));
  WLM_CHECK(add_item(c, begin, end, !conditional && !names));
  item *added = &c->items[c->count - 1];
  added->is_conditional = conditional;
  if (opens) {
    added->around = added->group;
    added->group = c->open[c->depth++] = c->count - 1;
  }
  c->depth -= closes;
  return WLM_OK;
}

/* Adds the declaration that begins here, and directives in it with it. *end is behind it, NULL if it has no end. */
static wlm_status add_declaration(cut *c, const char *begin, const char **end) {
  const int64_t named = c->name_count;
  const char *at = begin;
  wlmi_slice last = {0}; /* the word before `at` */
  char before = 0;       /* the character before it that is no blank */
  int depth = 0, has_body = 0, is_enum = 0, is_call = 0, is_typedef = 0;
  wlm_status status = WLM_OK;
  *end = NULL;
  while (*at) {
    const char *next = at + 1;
    if (*at == '#' && at[-1] == '\n') {
      if (!strncmp(at, "#define ", 8))
        WLM_CHECK(add_name(c, (wlmi_slice){at + 8, (size_t)(end_of_word(at + 8) - at - 8)}));
      next = end_of_line(at);
    } else if (is_letter(*at) || is_digit(*at)) {
      next = end_of_word(at);
      last = (wlmi_slice){at, is_letter(*at) ? (size_t)(next - at) : 0};
      if (depth == 1 && is_enum && last.size) WLM_CHECK(add_name(c, last));
      is_enum |= !depth && wlmi_slice_is(last, "enum");
      if (wlmi_slice_is(last, "enum") || wlmi_slice_is(last, "struct") || wlmi_slice_is(last, "union")) last.size = 0;
      is_typedef |= at == begin && wlmi_slice_is(last, "typedef");
      before = *at;
    } else if (*at == '"' || *at == '\'')
      next = end_of_literal(at);
    else if (*at != ' ' && *at != '\n') {
      if (!depth && last.size && strchr("([=;{,:", *at)) {
        is_call |= *at == '(' && last.text == begin;
        WLM_CHECK(add_name(c, last));
      }
      has_body |= !depth && *at == '{' && before == ')' && !is_typedef;
      depth += (strchr("([{", *at) != NULL) - (strchr(")]}", *at) != NULL);
      if (depth < 0) break;
      if (!depth && (*at == ';' || (*at == '}' && has_body))) {
        *end = next;
        status = add_item(c, begin, next, is_call || c->name_count == named);
        break;
      }
      last.size = 0;
      before = *at;
    }
    at = next;
  }
  return status;
}

/* *whole becomes 0 if the text could not be cut. */
static wlm_status add_items(cut *c, const char *at, int *whole) {
  while (*whole && *(at += strspn(at, " \n"))) {
    const char *end = end_of_line(at);
    if (*at == '#')
      WLM_CHECK(add_directive(c, at, end, whole));
    else
      WLM_CHECK(add_declaration(c, at, &end));
    *whole &= end != NULL;
    at = end;
  }
  *whole &= !c->depth;
  if (c->name_count) qsort(c->names, (size_t)c->name_count, sizeof *c->names, compare_names);
  return WLM_OK;
}

/* ---- what is used ------------------------------------------------------------------------------------------- */

static void keep(cut *c, int64_t i) {
  if (c->items[i].is_kept) return;
  c->items[i].is_kept = 1;
  c->queue[c->queued++] = i;
}

/* Keeps all items that declare this word. */
static void keep_named(cut *c, wlmi_slice word) {
  const name key = {word, 0};
  const name *found = c->name_count ? bsearch(&key, c->names, (size_t)c->name_count, sizeof key, compare_names) : NULL;
  if (!found) return;
  while (found > c->names && !compare_names(found - 1, &key)) found--;
  for (; found < c->names + c->name_count && !compare_names(found, &key); found++) keep(c, found->item);
}

static void keep_used_by(cut *c, int64_t i) {
  const item *used = &c->items[i];
  const char *end = used->piece.text + used->piece.size;
  if (used->group != NONE) keep(c, used->group);
  if (used->around != NONE) keep(c, used->around);
  for (int64_t j = i + 1; used->group == i && j < c->count; j++)
    if (c->items[j].is_conditional && c->items[j].group == i) keep(c, j);
  for (const char *at = used->piece.text; at < end;) {
    const char *next = end_of_word(at);
    if (is_letter(*at)) keep_named(c, (wlmi_slice){at, (size_t)(next - at)});
    at = next > at ? next : at + 1;
  }
}

static wlm_status keep_used(cut *c, const wlmi_program *program) {
  WLM_CHECK(wlmi_alloc_array(c->count, sizeof *c->queue, "declarations of a kernel", (void **)&c->queue));
  for (int64_t i = 0; i < c->count; i++)
    if (c->items[i].is_kept) c->queue[c->queued++] = i;
  for (int i = 0; i < program->pass_count; i++)
    keep_named(c, (wlmi_slice){program->passes[i].kernel, strlen(program->passes[i].kernel)});
  while (c->queued) keep_used_by(c, c->queue[--c->queued]);
  return WLM_OK;
}

wlm_status wlmi_kernel_text(const wlmi_program *program, wlmi_text *text) {
  wlmi_text plain = {0};
  cut c = {0};
  int whole = 1;
  wlm_status status = WLM_OK;
  append_plain(program->source, &plain);
  if (plain.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the text of a kernel"));
  if (plain.size) WLM_TRY(add_items(&c, plain.data, &whole));
  if (whole) WLM_TRY(keep_used(&c, program));
  if (!whole) wlmi_text_append(text, plain.data, plain.size);
  for (int64_t i = 0; whole && i < c.count; i++) {
    if (!c.items[i].is_kept) continue;
    wlmi_text_append(text, c.items[i].piece.text, c.items[i].piece.size);
    wlmi_text_puts(text, "\n");
  }
  if (text->failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the text of a kernel");
done:
  wlmi_text_release(&plain);
  wlmi_free(c.items);
  wlmi_free(c.names);
  wlmi_free(c.queue);
  return status;
}

wlm_status wlmi_kernel_hash(const wlmi_program *program, char hex[WLM_HASH_HEX]) {
  wlmi_text text = {0};
  wlm_status status = wlmi_kernel_text(program, &text);
  for (int i = 0; i < program->pass_count; i++) {
    const wlmi_pass *p = &program->passes[i];
    wlmi_text_printf(&text, "%s %d %d %d %lld %lld %lld %lld %d %lld %d\n", p->kernel, (int)p->when, (int)p->units,
                     (int)p->axis, (long long)p->units_per_block, (long long)p->columns_per_block, (long long)p->wave,
                     (long long)p->processors, p->threads, (long long)p->shared_bytes, p->dependent);
    if (p->nonzeros_per_unit) wlmi_text_printf(&text, "%lld\n", (long long)p->nonzeros_per_unit);
  }
  if (status == WLM_OK && text.failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the text of a kernel");
  if (status == WLM_OK) wlmi_hash_to_hex(wlmi_hash_bytes(text.data, text.size), hex);
  wlmi_text_release(&text);
  return status;
}
