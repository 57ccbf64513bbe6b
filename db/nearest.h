/* Which device's measurements serve a device that has none of its own. */
#ifndef WLM_DB_NEAREST_H
#define WLM_DB_NEAREST_H

#include "db/store.h"

/* Of the store's other device classes with measurements the nearest one, "" where none is near: the same chip (kind and
 * arch) with up to twice or half the processors; the same name before another, then the nearest number of processors.
 */
wlm_status wlmi_store_nearest_class(wlm_store *store, const wlmi_device_record *device, wlmi_text *device_class);

#endif
