#include <valgrind/callgrind.h>

/* Callgrind's switch, for Python: outside of what is measured, the program runs without it. */

void begin(void) { CALLGRIND_ZERO_STATS; CALLGRIND_START_INSTRUMENTATION; }
void end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
