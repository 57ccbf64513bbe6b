/* No two files of the C code use each other, directly or through others: neither do headers include each other, nor do
 * C files use each other's functions and variables.
 *
 * It reads the sources alone, whose format is known (clang-format). In a C file, a line that begins with a letter and
 * not with "static" defines the first name that is followed by ( [ = or ;. A macro or an inline function of a header
 * uses the names in its body, and a file that names it uses them too. */
#include <ctype.h>

#include "support/folder.h"
#include "support/test.h"
#include "support/tree.h"

enum { MOST_NODES = 2048, MOST_SYMBOLS = 8192, MOST_USES = 16384, NAME = 96 };

/* A file, or a macro or an inline function of a header. */
typedef struct node {
  char name[NAME];
  char *text;   /* without comments and strings */
  char *bodies; /* of a header: the text of its macros and inline functions */
  int is_file;
} node;

typedef struct symbol {
  char name[NAME];
  int node; /* that defines it */
  int is_function;
} symbol;

typedef struct use {
  int from, to;
  char what[NAME]; /* the name that is used, or "include" */
} use;

static node nodes[MOST_NODES];
static symbol symbols[MOST_SYMBOLS];
static use uses[MOST_USES];
static unsigned char reaches[MOST_NODES][MOST_NODES];
static int node_count, symbol_count, use_count;

static int begins(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }
static int is_name(int c) { return isalnum(c) || c == '_'; }
static int is_header(const char *path) { return path[strlen(path) - 1] == 'h'; }

/* Replaces comments, strings and characters by blanks, except the strings of #include lines; line ends stay. */
static void blank(char *text) {
  int is_include = begins(text, "#include");
  for (char *at = text; *at;) {
    if (*at == '\n') is_include = begins(at + 1, "#include");
    const char *end = begins(at, "/*") ? "*/" : begins(at, "//") ? "\n" : *at == '"' ? "\"" : *at == '\'' ? "'" : NULL;
    if (!end || (is_include && *at == '"')) {
      at++;
      continue;
    }
    const int is_quoted = *at == '"' || *at == '\'';
    *at++ = ' ';
    while (*at && !begins(at, end)) {
      if (is_quoted && *at == '\\') *at++ = ' ';
      if (*at != '\n') *at = ' ';
      at++;
    }
    for (size_t i = 0; *end != '\n' && i < strlen(end) && *at; i++) *at++ = ' ';
  }
}

static int add_node(const char *name, size_t size, char *text, int is_file) {
  assert_in_range(node_count, 0, MOST_NODES - 1);
  assert_in_range(size, 1, NAME - 1);
  node *added = &nodes[node_count];
  *added = (node){.text = text, .is_file = is_file};
  memcpy(added->name, name, size);
  return node_count++;
}

static void add_symbol(const char *name, size_t size, int of, int is_function) {
  assert_in_range(symbol_count, 0, MOST_SYMBOLS - 1);
  assert_in_range(size, 1, NAME - 1);
  symbol *added = &symbols[symbol_count++];
  *added = (symbol){.node = of, .is_function = is_function};
  memcpy(added->name, name, size);
}

static void add_use(int from, int to, const char *what) {
  assert_in_range(use_count, 0, MOST_USES - 1);
  uses[use_count] = (use){.from = from, .to = to};
  snprintf(uses[use_count++].what, NAME, "%s", what);
  reaches[from][to] = 1;
}

/* The next name of ours from *at on, and its size; *at moves behind it. NULL at the end. */
static const char *next_name(const char **at, const char *end, size_t *size) {
  while (*at < end) {
    const char *name = *at;
    while (*at < end && is_name((unsigned char)**at)) ++*at;
    *size = (size_t)(*at - name);
    if (begins(name, "wlm_") || begins(name, "wlmi_") || begins(name, "WLM_")) return name;
    if (*at == name) ++*at;
  }
  return NULL;
}

static char *line_end(char *line) { return line + strcspn(line, "\n"); }

/* ---- definitions ---- */

static void define_in_line(int file, const char *line, const char *end) {
  static const char *const others[] = {"static ", "typedef ", "extern ", "enum ", "union "};
  size_t size;
  if (!isalpha((unsigned char)*line)) return;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (begins(line, others[i])) return;
  for (const char *at = line, *name; (name = next_name(&at, end, &size));) {
    const char *behind = at + strspn(at, " ");
    if (begins(line, "struct ") && *behind == '{') return; /* a type */
    if (!strchr("([=;", *behind) || behind >= end) continue;
    add_symbol(name, size, file, *behind == '(');
    return;
  }
}

/* Cuts `text` behind the macro or function that begins at its first line; returns what follows. */
static char *end_of_body(char *text, int is_macro) {
  char *end = line_end(text);
  if (is_macro)
    while (*end && end[-1] == '\\') end = line_end(end + 1);
  else if (end[-1] != '}' && end[-1] != ';')
    while (*end && !begins(end, "\n}")) end = line_end(end + 1);
  if (*end && !is_macro && begins(end, "\n}")) end += 2;
  if (!*end) return end;
  *end = 0;
  return end + 1;
}

static void define_in_header(char *text) {
  size_t size;
  for (char *line = text, *next; *line; line = next) {
    const int is_macro = begins(line, "#define "), is_inline = begins(line, "static inline ");
    next = line_end(line);
    if (*next) next++;
    if (!is_macro && !is_inline) continue;
    next = end_of_body(line, is_macro);
    for (const char *at = line, *name; (name = next_name(&at, line_end(line), &size));) {
      if (is_inline && *at != '(') continue;
      add_symbol(name, size, add_node(name, size, line, 0), is_inline);
      break;
    }
  }
}

static void add_file(const char *path, const char *content) {
  char *text = strdup(content);
  assert_non_null(text);
  blank(text);
  const int file = add_node(path, strlen(path), text, 1);
  if (is_header(path)) {
    assert_non_null(nodes[file].bodies = strdup(text));
    define_in_header(nodes[file].bodies);
    return;
  }
  for (char *line = text; *line; line = line_end(line) + !!*line_end(line)) define_in_line(file, line, line_end(line));
}

/* ---- uses ---- */

static int compare_symbols(const void *left, const void *right) {
  return strcmp(((const symbol *)left)->name, ((const symbol *)right)->name);
}

static void use_symbols(int of) {
  size_t size;
  const char *text = nodes[of].text, *end = text + strlen(text);
  for (const char *at = text, *name; (name = next_name(&at, end, &size));) {
    symbol key = {.node = 0}, *found;
    if (size >= NAME) continue;
    memcpy(key.name, name, size);
    found = bsearch(&key, symbols, (size_t)symbol_count, sizeof key, compare_symbols);
    if (!found || found->node == of) continue;
    const char behind = at[strspn(at, " ")];
    const int is_type = is_name((unsigned char)behind) || behind == '*' || begins(at, "){");
    if (found->is_function && is_type) continue;
    if (!reaches[of][found->node]) add_use(of, found->node, key.name);
  }
}

static void use_headers(int of) {
  char path[NAME];
  for (char *line = nodes[of].text; *line; line = line_end(line) + !!*line_end(line)) {
    if (sscanf(line, "#include \"%95[^\"]\"", path) != 1) continue;
    for (int i = 0; i < node_count; i++)
      if (nodes[i].is_file && !strcmp(nodes[i].name, path)) add_use(of, i, "include");
  }
}

/* ---- circles ---- */

static void use_all(void) {
  qsort(symbols, (size_t)symbol_count, sizeof *symbols, compare_symbols);
  for (int i = 0; i < node_count; i++)
    if (nodes[i].is_file && is_header(nodes[i].name))
      use_headers(i);
    else
      use_symbols(i);
  for (int k = 0; k < node_count; k++)
    for (int i = 0; i < node_count; i++)
      for (int j = 0; reaches[i][k] && j < node_count; j++) reaches[i][j] |= reaches[k][j];
}

static int in_circle(int a, int b) { return a != b && reaches[a][b] && reaches[b][a]; }

/* Whether another file uses this one and is used by it. */
static int has_circle(int file) {
  for (int i = 0; i < node_count; i++)
    if (nodes[i].is_file && in_circle(file, i)) return 1;
  return 0;
}

/* Prints the uses that make circles; returns how many files are in one. */
static int find_circles(int is_shown) {
  int count = 0;
  use_all();
  for (int i = 0; i < node_count; i++) count += nodes[i].is_file && has_circle(i);
  for (int i = 0; is_shown && i < use_count; i++) {
    const use *u = &uses[i];
    if (in_circle(u->from, u->to) && has_circle(u->from) && has_circle(u->to))
      print_error("%s uses %s (%s) in a circle\n", nodes[u->from].name, nodes[u->to].name, u->what);
  }
  return count;
}

FIXTURE(clear) {
  for (int i = 0; i < node_count; i++)
    if (nodes[i].is_file) free(nodes[i].text), free(nodes[i].bodies);
  memset(reaches, 0, sizeof reaches);
  node_count = symbol_count = use_count = 0;
  return 0;
}

/* ---- tests ---- */

typedef struct made_up {
  const char *path, *text;
} made_up;

static int circles_of(const made_up *files) {
  clear(NULL);
  for (; files->path; files++) add_file(files->path, files->text);
  return find_circles(0);
}

TEST(circles_are_found) {
  const made_up apart[] = {
      {"a.c", "int wlmi_a(void) { return wlmi_b(); }\n"}, {"b.c", "int wlmi_b(void) {\n  return 1;\n}\n"}, {0}};
  const made_up two[] = {
      {"a.c", "int wlmi_a(void) { return wlmi_b(); }\n"}, {"b.c", "int wlmi_b(void) {\n  return wlmi_a();\n}\n"}, {0}};
  const made_up three[] = {
      {"a.c", "int wlmi_a(void) { return wlmi_b(); }\n"},
      {"b.c", "int wlmi_b(void) { return wlmi_c[0](); }\n"},
      {"c.c", "int (*const wlmi_other)(void);\nconst wlmi_fn *const wlmi_c[] = {\n    wlmi_a,\n};\n"},
      {"d.c", "int wlmi_d(void) { return wlmi_a(); }\n"},
      {0}};
  const made_up by_inline[] = {{"a.c", "int wlmi_a(void) { return wlmi_i(); }\n"},
                               {"a.h", "static inline int wlmi_i(void) {\n  return wlmi_b();\n}\nint wlmi_a(void);\n"},
                               {"b.c", "int wlmi_b(void) { return wlmi_a(); }\n"},
                               {0}};
  const made_up by_macro[] = {{"a.c", "int wlmi_a(void) { return WLM_M(1); }\n"},
                              {"b.h", "#define WLM_M(x) \\\n  wlmi_b(x)\nint wlmi_b(int);\n"},
                              {"b.c", "int wlmi_b(int x) { return x + wlmi_a(); }\n"},
                              {0}};
  const made_up own_inline[] = {{"a.c", "int wlmi_a(void) { return wlmi_i(); }\n"},
                                {"a.h", "static inline int wlmi_i(void) { return wlmi_a(); }\n"},
                                {0}};
  const made_up in_text[] = {{"a.c", "int wlmi_a(void) { return wlmi_b(); }\n"},
                             {"b.c", "/* wlmi_a() */\nint wlmi_b(void) { return *\"\\\"wlmi_a()\"; }\n"},
                             {0}};
  const made_up as_type[] = {
      {"a.c", "void wlmi_a(int x) { wlmi_b(x); }\n"},
      {"b.c", "static void f(const wlmi_a *a);\nvoid wlmi_b(int x) { wlmi_a y = (wlmi_a){0}; }\n"},
      {0}};
  const made_up local[] = {{"a.c", "static int wlmi_x(void) { return wlmi_b(); }\n"},
                           {"b.c", "int wlmi_b(void) { return wlmi_x(); }\n"},
                           {0}};
  const made_up headers[] = {
      {"a.h", "#include \"b.h\"\n"}, {"b.h", "#include <c.h>\n#include \"a.h\"\n"}, {"c.h", "#include \"a.h\"\n"}, {0}};
  assert_int_equal(circles_of(apart), 0);
  assert_int_equal(circles_of(two), 2);
  assert_int_equal(circles_of(three), 3);
  assert_int_equal(circles_of(by_inline), 2);
  assert_int_equal(circles_of(by_macro), 2);
  assert_int_equal(circles_of(own_inline), 0);
  assert_int_equal(circles_of(in_text), 0);
  assert_int_equal(circles_of(as_type), 0);
  assert_int_equal(circles_of(local), 0);
  assert_int_equal(circles_of(headers), 2);
}

static void add_from_tree(const char *path) {
  if (begins(path, "exported/library/")) return; /* it defines functions of other files, for another library */
  char name[1024];
  size_t size;
  snprintf(name, sizeof name, "%s/%s", WLM_SOURCE_DIR, path);
  unsigned char *text = read_whole(name, &size);
  add_file(begins(path, "include/") ? path + strlen("include/") : path, (const char *)text);
  free(text);
}

TEST_BETWEEN(tree_has_none, clear, NULL) {
  static const char *const folders[] = {"include", "core",     "select", "generator", "db",
                                        "runtime", "exported", "tuner",  "cli",       "bench"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) tree_each(WLM_SOURCE_DIR, folders[i], add_from_tree);
  assert_int_equal(find_circles(1), 0);
  print_message("%d nodes, %d symbols, %d uses\n", node_count, symbol_count, use_count);
  assert_true(symbol_count > 800 && use_count > 1500);
}
