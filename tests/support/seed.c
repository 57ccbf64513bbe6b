#include "support/seed.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/text.h"

int test_is_drawn(const char *check, int one_in) {
  const char *seed = getenv("WARPLOOM_SEED");
  wlmi_text text = {0};
  if (getenv("WARPLOOM_FULL")) return 1;
  wlmi_text_printf(&text, "%s %s", seed ? seed : "0", check);
  if (text.failed) abort();
  const int is_drawn = wlmi_hash_bytes(text.data, text.size).low % (uint64_t)one_in == 0;
  wlmi_text_release(&text);
  return is_drawn;
}
