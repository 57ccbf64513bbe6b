#include "core/csr/formats.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define STRING(text) text, sizeof(text) - 1

/* What is no text, by its first bytes, after gunzip. What has no function is refused. */
static const struct signature {
  size_t at;
  const char *bytes;
  size_t size;
  wlm_status (*parse)(wlmi_lines *lines, const wlmi_size_check *check, wlmi_csr_host *out);
  const char *refusal;
} signatures[] = {
    {0, STRING("PK\3\4"), wlmi_scipy_parse, NULL},
    {0, STRING("PK\5\6"), wlmi_scipy_parse, NULL},
    {257, STRING("ustar"), NULL, "a tar archive; unpack it by tar -xf, and give the matrix file in it"},
    {0, STRING("7z\xBC\xAF"), NULL, "a 7-Zip archive; unpack it, and give the matrix file in it"},
    {0, STRING("BZh"), NULL, "compressed by bzip2; unpack it by bunzip2"},
    {0,
     STRING("\xFD"
            "7zXZ"),
     NULL, "compressed by xz; unpack it by unxz"},
    {0, STRING("\x28\xB5\x2F\xFD"), NULL, "compressed by zstd; unpack it by unzstd"},
    {0, STRING("\x1F\x9D"), NULL, "compressed by compress; unpack it by gunzip"},
    {0, STRING("\x1F\x8B"), NULL, "compressed twice by gzip; unpack it by gunzip"},
    {0, STRING("\xFF\xFE"), NULL, "text in UTF-16; convert it by iconv -f UTF-16 -t UTF-8"},
    {0, STRING("\xFE\xFF"), NULL, "text in UTF-16; convert it by iconv -f UTF-16 -t UTF-8"},
    {0, STRING("\x93NUMPY"), NULL, "an array of NumPy; save a sparse matrix by scipy.sparse.save_npz"},
    {0, STRING("\x89HDF"), NULL, "HDF5; read it in Python, and save the matrix by scipy.sparse.save_npz"},
    {0, STRING("MATLAB"), NULL,
     "a file of MATLAB; read it by scipy.io.loadmat, and save the matrix by "
     "scipy.sparse.save_npz"},
    {0, STRING("SQLite format 3"), NULL, "a database and no matrix; commands take it as --db"},
    {0, STRING("{\"warploom\""), NULL, "a file of warploom export and no matrix; commands take it as --use"},
    {0, STRING("<"), NULL, "HTML or XML, perhaps the page of an error; fetch the matrix again"},
};
enum { SIGNATURES = sizeof signatures / sizeof *signatures, PEEKED = 512 };

static const struct signature *signature_of(const char *start, size_t size) {
  for (int i = 0; i < SIGNATURES; i++) {
    const struct signature *s = &signatures[i];
    if (size >= s->at + s->size && !memcmp(start + s->at, s->bytes, s->size)) return s;
  }
  return NULL;
}

/* ---- text ---- */

static int is_comment(const char *line) { return *line == '%' || *line == '#'; }

/* Also a damaged one, such as "% MatrixMarket" and "%%MatrxMarket". */
static int is_banner(const wlmi_lines *lines, const char *line) {
  return !strncmp(line, "%%", 2) ||
         !strncasecmp_l(line + strspn(line, "%# \t"), STRING("MatrixMarket"), lines->c_locale);
}

static int ends_with(const wlmi_lines *lines, const char *end) {
  const size_t length = strlen(lines->path), cut = strlen(end);
  return length >= cut && !strcasecmp_l(lines->path + length - cut, end, lines->c_locale);
}

static wlm_status read_text(wlmi_lines *lines, const wlmi_size_check *check, wlmi_csr_host *out) {
  wlmi_text_head head = {0};
  int has_banner = 0, is_over = 0;
  while (!is_over) {
    WLM_CHECK(wlmi_words_line(lines, "", &head.line));
    has_banner = head.line && is_banner(lines, head.line);
    is_over = !head.line || has_banner || !is_comment(head.line);
    if (!is_over) snprintf(head.comment, sizeof head.comment, "%s", head.line);
  }
  /* A text with the name of Matrix Market that lacks its banner is a mistake and no edge list. */
  if (has_banner || ends_with(lines, ".mtx") || ends_with(lines, ".mtx.gz"))
    return wlmi_matrix_market_parse(lines, &head, check, out);
  return wlmi_edge_list_parse(lines, &head, check, out);
}

wlm_status wlmi_matrix_file_read(const char *path, const wlmi_size_check *check, wlmi_csr_host *out) {
  wlmi_lines lines;
  const char *start;
  size_t size;
  wlm_status status;
  *out = (wlmi_csr_host){0};
  WLM_TRY(wlmi_lines_open(path, &lines));
  WLM_TRY(wlmi_lines_peek(&lines, PEEKED, &start, &size));
  const struct signature *s = signature_of(start, size);
  if (s && s->refusal)
    status = wlmi_fail(WLM_ERR_UNSUPPORTED, "%s: %s", lines.path, s->refusal);
  else
    status = s ? s->parse(&lines, check, out) : read_text(&lines, check, out);
done:
  wlmi_lines_close(&lines);
  return status;
}
