/* Puts pictures into a page: each is opened at its position, one run of gnuplot draws all, and then they are inserted
 * as data URLs. As images they cannot run scripts, whatever their labels contain. */
#ifndef WLM_CLI_PAGE_PICTURES_H
#define WLM_CLI_PAGE_PICTURES_H

#include <stdint.h>

#include "core/base/temporary.h"
#include "core/base/text.h"

typedef struct wlmi_pictures {
  wlmi_text script;
  size_t *places; /* positions in the page */
  int64_t count, capacity;
  wlmi_temporary temporary; /* its folder is "" until the first picture */
} wlmi_pictures;

/* Opens a picture at the present end of the page; append its gnuplot commands to the script. */
wlm_status wlmi_pictures_open(wlmi_pictures *pictures, const wlmi_text *page, int width, int height);
/* Draws the pictures and writes the page with them as data URLs to `out`. Without pictures gnuplot is not needed.
 * WLM_ERR_NOT_FOUND without gnuplot. */
wlm_status wlmi_pictures_finish(wlmi_pictures *pictures, const wlmi_text *page, wlmi_text *out);
void wlmi_pictures_release(wlmi_pictures *pictures); /* with all files; also of a zeroed one */

#endif
