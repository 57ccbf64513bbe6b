/* Algebraic properties of operators, for every variant of the host's families, with a row that all of them split. */
#include <stdint.h>

#include "runtime/devices.h"
#include "support/asserts.h"
#include "support/properties.h"

int main(void) { return properties_run(&(properties){wlmi_host_device_open, 40, 20000, 100}); }
