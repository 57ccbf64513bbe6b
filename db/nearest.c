#include "db/nearest.h"

#include "db/store_state.h"

/* The ratio of processors, the larger over the smaller, is what a fixed shape of kernel feels. */
static const char sql[] =
    "SELECT class FROM (SELECT DISTINCT class, name, CASE WHEN processors > ?4 THEN 1.0 * processors / ?4"
    " ELSE 1.0 * ?4 / processors END AS ratio FROM device"
    " WHERE kind = ?1 AND arch = ?2 AND NOT (name = ?3 AND processors = ?4)"
    " AND EXISTS (SELECT 1 FROM measurement m WHERE m.device = device.id))"
    " WHERE ratio <= 2 ORDER BY name <> ?3, ratio, class LIMIT 1";

wlm_status wlmi_store_nearest_class(wlm_store *store, const wlmi_device_record *device, wlmi_text *device_class) {
  sqlite3_stmt *row = NULL;
  wlm_status status;
  int found;
  WLM_TRY(wlmi_sqlite_prepare(store->db, sql, &row));
  wlmi_sqlite_bind_text(row, 1, device->kind);
  wlmi_sqlite_bind_text(row, 2, device->arch);
  wlmi_sqlite_bind_text(row, 3, device->name);
  sqlite3_bind_int(row, 4, device->processors);
  WLM_TRY(wlmi_sqlite_step(row, &found));
  wlmi_text_puts(device_class, found ? wlmi_sqlite_text(row, 0) : "");
  if (device_class->failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "class of a device");
done:
  sqlite3_finalize(row);
  return status;
}
