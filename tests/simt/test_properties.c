/* Algebraic properties of operators on emitted CUDA, as fibers under ASan and UBSan: several variants of every family,
 * with an N so small that all families serve it. */
#include <omp.h>
#include <stdint.h>

#include "simt/shim/simt_device.h"
#include "support/asserts.h"
#include "support/properties.h"

int main(void) {
  omp_set_num_threads(1);
  return properties_run(&(properties){simt_device_open, 8, 3000, 2});
}
