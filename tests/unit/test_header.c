/* The public headers compile by themselves without warnings as C99, C11 and C++17, and what a product needs first is
 * short. */
#include "support/test.h"
#include "warploom/warploom_tune.h"

#include "support/folder.h"

/* Programs that include one header each and use all its macros. */
static const char *const sources[] = {
    "#include <warploom/warploom.h>\n"
    "int main(void);\n"
    "int main(void) {\n"
    "  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;\n"
    "  wlm_csr csr = WLM_CSR_INIT;\n"
    "  wlm_coo coo = WLM_COO_INIT;\n"
    "  wlm_problem problem = WLM_PROBLEM_INIT;\n"
    "  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;\n"
    "  wlm_matrix_options matrix = WLM_MATRIX_OPTIONS_INIT;\n"
    "  wlm_stats stats = WLM_STATS_INIT;\n"
    "  return options.size + csr.size + coo.size + problem.size + args.size + matrix.size + stats.size == 0;\n"
    "}\n",
    "#include <warploom/warploom_attention.h>\n"
    "int main(void);\n"
    "int main(void) {\n"
    "  wlm_attention_operands attention = WLM_ATTENTION_OPERANDS_INIT;\n"
    "  return attention.size == 0;\n"
    "}\n",
    "#include <warploom/warploom_message.h>\n"
    "int main(void);\n"
    "int main(void) {\n"
    "  wlm_message_args message = WLM_MESSAGE_ARGS_INIT;\n"
    "  wlm_message_table table = WLM_MESSAGE_TABLE_INIT;\n"
    "  return message.size + table.size == 0;\n"
    "}\n",
    "#include <warploom/warploom_tune.h>\n"
    "int main(void);\n"
    "int main(void) {\n"
    "  wlm_tune_options tune = WLM_TUNE_OPTIONS_INIT;\n"
    "  wlm_online_options online = WLM_ONLINE_OPTIONS_INIT;\n"
    "  wlm_online_state state = WLM_ONLINE_STATE_INIT;\n"
    "  return tune.size + online.size + state.size == 0;\n"
    "}\n",
};

static void compile(const char *compiler, const char *language, const char *standard) {
  char line[1024];
  snprintf(line, sizeof line, "command -v %s >/dev/null", compiler);
  if (system(line)) test_missing(compiler, compiler, "the headers were not compiled with it");
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
    write_whole(folder_file(&folder, "alone.source"), sources[i], strlen(sources[i]));
    snprintf(line, sizeof line,
             "%s -x %s -std=%s -Wall -Wextra -pedantic -Werror -fsyntax-only -I '" WLM_SOURCE_DIR "/include' '%s'",
             compiler, language, standard, folder.file);
    if (system(line)) fail_msg("%s", line);
  }
}

TEST(as_c99) { compile("cc", "c", "c99"); }

TEST(as_c11) { compile("cc", "c", "c11"); }

TEST(as_cxx17) { compile("c++", "c++", "c++17"); }

/* What a program in the place of one with cuSPARSE reads first: from the matrix to the product. */
TEST(a_product_takes_150_lines) {
  size_t size;
  FREED char *raw = (char *)read_whole(WLM_SOURCE_DIR "/include/warploom/warploom.h", &size),
             *text = strndup(raw, size);
  const char *at = strstr(text, "/* ---- the matrix A"), *end = strstr(text, "wlm_spmm(wlm_context *context");
  int lines = 1;
  assert_true(at && end && at < end);
  for (; at < end; at++) lines += *at == '\n';
  if (lines > 150) fail_msg("%d lines; move what most programs do not need to another section or header", lines);
}

GROUP(folder_begin, folder_end)
