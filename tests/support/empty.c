/* CMake requires at least one source file of a library. */
typedef int wlmi_test_support_is_not_empty;
