/* Similar variants for types of different size (bench/similar.h). */
#include "bench/similar.h"
#include "support/test.h"

TEST(similar_variants) {
  static const struct {
    const char *a, *b;
    int are;
  } pairs[] = {
      {"row_crc/cf=2,rows=4", "row_crc/cf=2,rows=4", 1},
      {"row_crc/cf=2,rows=4", "row_crc/cf=2,rows=8", 0},
      {"row_crc/cf=2,rows=4", "row_crc/cf=2", 0},
      {"a/x=1", "b/x=1", 0},
      {"a", "a", 1},
      {"row_vec/lanes=8,vector=4,batch=4", "row_vec/lanes=8,vector=4,batch=4", 1},
      {"row_vec/lanes=8,vector=4,batch=4", "row_vec/lanes=16,vector=4,batch=4", 0},
      {"row_vec/lanes=8,vector=4,batch=4", "row_vec/lanes=8,vector=8,batch=4", 1},   /* the same number of lanes */
      {"row_vec/lanes=8,vector=4,batch=4", "row_vec/lanes=4,vector=8,batch=4", 1},   /* the same number of columns */
      {"row_vec/lanes=16,vector=4,batch=4", "row_vec/lanes=32,vector=2,batch=4", 1}, /* f64 has half the vector */
      {"row_vec/lanes=8,vector=4,batch=4", "row_vec/lanes=16,vector=8,batch=4", 0},
      {"row_vec/lanes=8,vector=4,batch=4", "row_vec/lanes=4,vector=8,batch=8", 0},
      {"row_block/threads=128,rows=4,lanes=8,vector=4,batch=4", "row_vec/lanes=8,vector=4,batch=4", 0},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    for (int turned = 0; turned < 2; turned++) {
      const char *a = turned ? pairs[i].b : pairs[i].a, *b = turned ? pairs[i].a : pairs[i].b;
      if (wlmi_variants_are_similar(a, b) != pairs[i].are) fail_msg("%s and %s", a, b);
    }
}

TEST(families) {
  assert_true(wlmi_same_family("row_vec/lanes=8", "row_vec/lanes=16"));
  assert_true(wlmi_same_family("row_vec", "row_vec/lanes=16"));
  assert_false(wlmi_same_family("row_vec/lanes=8", "row_vec2/lanes=8"));
  assert_false(wlmi_same_family("row_vec/lanes=8", "row/lanes=8"));
}
