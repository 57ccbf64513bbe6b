/* Pictures on their way into a page: each is opened where it will stand, all are drawn by one run of gnuplot, and then
 * put in their places as images that the page carries itself. An image runs no script, whatever its labels say. */
#ifndef WLM_CLI_PAGE_PICTURES_H
#define WLM_CLI_PAGE_PICTURES_H

#include <stdint.h>

#include "common/temporary.h"
#include "common/text.h"

typedef struct wlmi_pictures {
  wlmi_text script;
  size_t *places; /* in the page */
  int64_t count, capacity;
  wlmi_temporary temporary; /* its folder is "" until the first picture */
} wlmi_pictures;

/* A picture that will stand at the end of what the page has by now: append gnuplot commands to the script. */
wlm_status wlmi_pictures_open(wlmi_pictures *pictures, const wlmi_text *page, int width, int height);
/* Draws them and copies the page with them into `out`, as data URLs. Without a picture gnuplot is not needed.
 * WLM_ERR_NOT_FOUND where there is none. */
wlm_status wlmi_pictures_finish(wlmi_pictures *pictures, const wlmi_text *page, wlmi_text *out);
void wlmi_pictures_release(wlmi_pictures *pictures); /* with all files; also of a zeroed one */

#endif
