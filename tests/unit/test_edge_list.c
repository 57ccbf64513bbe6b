/* Edge lists: which files are read and which refused, with the line of the error. */
#include <zlib.h>

#include "core/synth/input.h"
#include "support/csr.h"
#include "support/folder.h"
#include "support/test.h"

static wlm_status read_text(const char *text, wlmi_csr_host *csr) {
  write_whole(folder_file(&folder, "edges.txt"), text, strlen(text));
  return wlmi_input_read(folder.file, csr);
}

static const struct {
  const char *text, *matrix;
} good[] = {
    {"0 1\n2 0\n", "3: 0,1 2,0"},
    {"# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n0\t1\n2\t0\n", "3: 0,1 2,0"},
    {"% sym unweighted\n% 2 3 3\n1 2\n2 3\n", "4: 1,2 2,3"},
    {"0,1\n2,0\n", "3: 0,1 2,0"},
    {"source,target,weight\n0,1,0.5\n2,0,-1e3\n", "3: 0,1=0.5 2,0=-1000"},
    {"\"source\";\"target\"\r\n0;1\r\n2;0\r\n", "3: 0,1 2,0"},
    {"weight,source,target\n5,1,2\n7,3,4\n", "5: 1,2=5 3,4=7"},
    {"target,source\n0,1\n2,0\n", "3: 0,2 1,0"},
    {"To Node;Weight;\"From Node\"\n0;nan;1\n", "2: 1,0=nan"},
    {"\n# weight source target\n5 1 2\n", "3: 1,2=5"},
    {"# FromNodeId\tToNodeId\n0 1 5\n", "2: 0,1=5"},
    {"node_1,node_2\n0,1\n", "2: 0,1"},
    {"u v \n0 1\n", "2: 0,1"},
    {"0 1\r2 0\r", "3: 0,1 2,0"},
    {"0 1\r1 2\r\n2 0\n\r1 0", "3: 0,1 1,0 1,2 2,0"},
    {"source target\n2 1\n0 1\n", "3: 0,1 2,1"},
    {"\xEF\xBB\xBFsource,target\n0,1\n", "2: 0,1"},
    {"\xEF\xBB\xBF"
     "0,1\n",
     "2: 0,1"},
    {" 0 , 1 ,\t2.5 \n\n2,0,1\n", "3: 0,1=2.5 2,0=1"},
    {"0 1 2\n0 1 3\n", "2: 0,1=5"},
    {"1 0\n1 0\n1 0", "2: 1,0=3"},
    {"0 0\n", "1: 0,0"},
    {NULL, NULL},
};

static void describe(const wlmi_csr_host *csr, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "%lld:", (long long)csr->rows);
  for (int64_t r = 0; r < csr->rows; r++)
    for (int64_t i = csr->rowptr[r]; i < csr->rowptr[r + 1]; i++) {
      used += (size_t)snprintf(text + used, size - used, " %lld,%d", (long long)r, csr->colind[i]);
      if (csr->values) used += (size_t)snprintf(text + used, size - used, "=%.9g", (double)csr->values[i]);
    }
}

TEST(good_files) {
  for (size_t i = 0; good[i].matrix; i++) {
    char text[400];
    HOLD(wlmi_csr_host, csr, read_text(good[i].text, &csr));
    assert_csr(&csr);
    assert_int_equal(csr.rows, csr.cols);
    describe(&csr, text, sizeof text);
    assert_string_equal(text, good[i].matrix);
  }
}

static const struct {
  const char *text, *where, *what;
} bad[] = {
    {"", ":1:", "the file is empty; give"},
    {"# nothing\n\n", ":2:", "the file has no edges; give"},
    {"source,target\n", ":1:", "the file has no edges"},
    {"source target\nsource target\n", ":2:", "source 'source' is not an integer"},
    {"0\n", ":1:", "1 column; an edge is 'source target' or"},
    {"0 1\n2\n", ":2:", "1 column where the first edge has 2"},
    /* names that say nothing, or too little */
    {"hello\n0 1\n", ":1:", "a first line of names with 'hello'; name the columns"},
    {"a,b\n0,1\n", ":1:", "names with 'a'"},
    {"O 1\n1 2\n", ":1:", "names with 'O'"},
    {"source target time\n0 1 5\n", ":1:", "names with 'time'"},
    {"source,source\n0,1\n", ":1:", "names with 'source'"},
    {"source,weight\n0,1\n", ":1:", "names with 'source,weight'"},
    {"source,target\n0,1,5\n", ":2:", "3 columns with 2 names"},
    {"source,target,weight\n0,1\n", ":2:", "2 columns with 3 names"},
    {",source,target\n0,1,2\n", ":1:", "names with ''"},
    {"\"0\",\"1\"\n0,1\n", ":1:", "names with '\"0\"'"},
    {"*Vertices 3\n1 2\n", ":1:", "names with '*Vertices'"},
    /* sizes in the first line: METIS, Matrix Market without its banner, nodes and edges */
    {"% ring\n4 4\n2 4\n1 3\n2 4\n1 3\n", ":2:", "this line seems to give the sizes of those after it"},
    {"4 6 0\n2 3 4\n1 3 4\n1 2 4\n1 2 3\n", ":1:", "seems to give the sizes"},
    {"4 4 10\n7 2 4\n1 1 3\n1 2 4\n1 1 3\n", ":1:", "seems to give the sizes"},
    {"4 5\n2 3\n1 3 4\n1 2 4\n2 3\n", ":3:", "3 columns where the first edge has 2"},
    {"3 3 4\n1 1 1.5\n2 3 -2\n3 1 4\n3 3 0.25\n", ":1:", "put a line 'source target weight' before it"},
    {"3 4 2\n1 1\n2 3\n", ":2:", "2 columns where the first edge has 3"},
    {"3 2\n0 1\n2 0\n", ":1:", "put a line 'source target' before it"},
    {"0 1\r2\n", ":2:", "1 column where"},
    {"0 x\n", ":1:", "target 'x' is not an integer"},
    {"0 1.5\n", ":1:", "target '1.5' is not an integer"},
    {"-1 0\n", ":1:", "source -1 is out of range; it must be 0 to 2147483646"},
    {"0 2147483647\n", ":1:", "target 2147483647 is out of range"},
    {"0 4294967297\n", ":1:", "target 4294967297 is out of range"},
    {"0 99999999999999999999\n", ":1:", "not an integer of 64 bits"},
    {"0 1\n1 2 3\n", ":2:", "3 columns where the first edge has 2"},
    {"0 1 2 1082040961\n", ":1:", "4 columns; an edge is"},
    {"0,1\n1,2,3\n", ":2:", "3 columns where the first edge has 2"},
    {"0 1 2\n1 2\n", ":2:", "2 columns where the first edge has 3"},
    {"0 1 nano\n", ":1:", "weight 'nano' is not a number"},
    {"0 1 1e39\n", ":1:", "range of float"},
    {"0 1 two\n", ":1:", "weight 'two'"},
    {"0 1 # note\n", ":1:", "4 columns"},
    {"0,1\n1 2\n", ":2:", "'2' where ',' is expected"},
    {"0 1\n1,2\n", ":2:", "source '1,2' is not an integer"},
    {"0,,1\n", ":1:", "target '' is not an integer"},
    {"0,1,\n", ":1:", "the weight is missing"},
    {",1\n", ":1:", "source '' is not an integer"},
    {"0;1,5\n", ":1:", "target '1,5' is not an integer"},
};

TEST(bad_files) {
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char place[400];
    wlmi_csr_host csr = {.rows = 7};
    const wlm_status status = read_text(bad[i].text, &csr);
    if (status != WLM_ERR_PARSE) fail_msg("case %zu: %s (%s)", i, wlm_status_name(status), wlm_error_detail());
    snprintf(place, sizeof place, "%s%s", folder.file, bad[i].where);
    assert_contains(wlm_error_detail(), place);
    assert_contains(wlm_error_detail(), bad[i].what);
    assert_contains(wlm_error_detail(), ";"); /* the message goes on with what to do */
    assert_int_equal(csr.rows, 0);
  }
}

/* Repeated edges are summed; inf would be a value that no file may have. */
TEST(sums_beyond_float) {
  HELD(wlmi_csr_host) csr = {.rows = 7};
  assert_fails(WLM_ERR_OVERFLOW, read_text("0 1 3e38\n1 0 1\n0 1 3e38\n", &csr), folder.file);
  assert_contains(wlm_error_detail(), "the entries at (0, 1), counted from 0, sum to 6e+38");
  assert_int_equal(csr.rows, 0);
  assert_status(WLM_OK, read_text("0 1 3e38\n0 1 3e38\n0 1 -3e38\n", &csr));
  assert_true(csr.nnz == 1 && csr.values[0] == 3e38f);
}

/* A text named .mtx is no edge list, and %% begins Matrix Market under every name. test_matrix_market.c has more. */
TEST(broken_matrix_market_is_no_edge_list) {
  wlmi_csr_host csr;
  write_whole(folder_file(&folder, "a.mtx"), "1 2\n", 4);
  assert_fails(WLM_ERR_PARSE, wlmi_input_read(folder.file, &csr), "'1' is not Matrix Market");
  assert_fails(WLM_ERR_PARSE, read_text("%%MatrixMarkt\n1 2\n", &csr), "'MatrixMarkt' is not Matrix Market");
}

TEST(compressed_files) {
  gzFile file = gzopen(folder_file(&folder, "edges.csv.gz"), "wb");
  gzputs(file, "src,dst\n0,1\n");
  gzclose(file);
  HOLD(wlmi_csr_host, csr, wlmi_input_read(folder.file, &csr));
  assert_int_equal(csr.nnz, 1);
}

typedef struct sizes {
  int64_t most, asked, last;
} sizes;

static wlm_status fits(void *user, int64_t rows, int64_t cols, int64_t nnz) {
  sizes *s = user;
  assert_int_equal(rows, cols);
  s->asked++;
  s->last = nnz;
  return nnz > s->most ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "too large") : WLM_OK;
}

/* A long list is refused long before its end. */
TEST(the_size_is_checked_while_reading) {
  enum { EDGES = 1000000 };
  sizes s = {.most = 100000};
  HELD(wlmi_csr_host) csr;
  FREED char *text = malloc(EDGES * 4 + 1);
  for (int i = 0; i < EDGES; i++) memcpy(text + 4 * (size_t)i, i % 2 ? "1 2\n" : "0 9\n", 4);
  write_whole(folder_file(&folder, "long.txt"), text, EDGES * 4);
  assert_status(WLM_ERR_OUT_OF_MEMORY, wlmi_input_read_checked(folder.file, &(wlmi_size_check){fits, &s}, &csr));
  assert_in_range(s.last, 100001, 300000);
  s = (sizes){.most = EDGES};
  assert_status(WLM_OK, wlmi_input_read_checked(folder.file, &(wlmi_size_check){fits, &s}, &csr));
  assert_int_equal(s.last, EDGES);
  assert_int_equal(csr.rows, 10);
  assert_int_equal(csr.nnz, 2);
  assert_true(csr.values[0] == EDGES / 2);
}

GROUP(folder_begin, folder_end)
