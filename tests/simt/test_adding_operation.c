/* The example of docs/adding-an-operation.md works: its program, which tests/CMakeLists.txt takes from the page, gets a
 * gradient that agrees with its difference quotient, and its text and gradients agree with float64 in every family. */
#include <omp.h>

#include "runtime/devices.h"
#include "simt/shim/simt_device.h"
#include "support/command.h"
#include "support/kernel_check.h"
#include "support/test.h"
#include "warploom/warploom_message.h"

/* The text of the program's message; free(). */
static char *text_of_the_page(void) {
  static const char before[] = "problem.custom = \"";
  size_t size;
  FREED char *raw = (char *)read_whole(WLM_SOURCE_DIR "/docs/adding-an-operation.md", &size);
  FREED char *page = strndup(raw, size);
  const char *begin = strstr(page, before);
  if (!begin) fail_msg("docs/adding-an-operation.md has no %s", before);
  begin += strlen(before);
  char *text = strndup(begin, strcspn(begin, "\""));
  return text;
}

TEST(the_program_runs) {
  command c;
  double derived, quotient;
  command_start(&c, &folder, (const char *const[]){WLM_EXAMPLE, NULL});
  command_wait(&c);
  if (c.code) fail_msg("exit code %d\n%s%s", c.code, c.out, c.err);
  const char *numbers = strstr(c.out, "derived ");
  if (!numbers || sscanf(numbers, "derived %lf, difference quotient %lf", &derived, &quotient) != 2)
    fail_msg("no gradient in\n%s", c.out);
  assert_true(fabs(derived) > 0.1); /* an array that nothing was written to is 0 */
  if (!(fabs(derived - quotient) < 0.01 * fabs(derived))) fail_msg("%s", c.out);
}

static void check_message(wlmi_device *device, const wlm_problem *problem) {
  wlm_csr csr = WLM_CSR_INIT;
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  GET(wlmi_spec, spec, wlmi_spec_make(problem, &csr, &spec));
  assert_true(kernel_check_families(device, generator, &spec, 1, 1) > 1);
}

/* The message, and its gradients by the operands of rows and of columns. */
static void check_on(wlmi_device *device) {
  static const char *const by[] = {"x,t", "k,b"};
  FREED char *text = text_of_the_page();
  wlm_problem problem = PROBLEM(.operation = WLM_MESSAGE, .reduce = WLM_CUSTOM, .custom = text, .n = 24);
  check_message(device, &problem);
  for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
    wlm_problem gradient = WLM_PROBLEM_INIT;
    WLM_FREED GET(char *, derived, wlm_message_gradient(&problem, by[i], &gradient, &derived));
    check_message(device, &gradient);
  }
  device->ops->close(device);
}

TEST(every_family_of_cuda) {
  GET(wlmi_device *, device, simt_device_open(&device));
  check_on(device);
}

TEST(every_family_of_the_host) {
  GET(wlmi_device *, device, wlmi_host_device_open(&device));
  check_on(device);
}

GROUP(home_begin, folder_end)

int main(void) {
  omp_set_num_threads(1);
  return test_run();
}
