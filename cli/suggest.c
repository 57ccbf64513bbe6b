/* Names are similar by the fewest letters to add, to remove, to change, or to exchange with the next one (optimal
 * string alignment; Damerau 1964: A Technique for Computer Detection and Correction of Spelling Errors). */
#include "cli/suggest.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 24 };

static int least(int a, int b) { return a < b ? a : b; }

static int distance(const char *a, const char *b) {
  int d[LONGEST + 1][LONGEST + 1];
  const int rows = (int)strlen(a), cols = (int)strlen(b);
  if (rows > LONGEST || cols > LONGEST) return LONGEST;
  for (int i = 0; i <= rows; i++)
    for (int j = 0; j <= cols; j++) {
      if (!i || !j) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[rows][cols];
}

void wlmi_suggest(const char *typed, const char *dashes, wlmi_name_at *name_at, char suggestion[WLMI_SUGGESTION]) {
  const char *name, *best = NULL;
  int nearest = strlen(typed) < 7 ? 2 : 3; /* one mistake in a short name, two in a long one */
  for (int i = 0; (name = name_at(i)) != NULL; i++) {
    const int d = distance(typed, name);
    if (d >= nearest) continue;
    nearest = d;
    best = name;
  }
  *suggestion = 0;
  if (best) snprintf(suggestion, WLMI_SUGGESTION, "did you mean '%s%s'? ", dashes, best);
}
