// Where oneDNN's small change comes from. Executing a primitive makes a handful of little objects
// with operator new (a map of its arguments, a few hundred bytes), which no interface of the
// library avoids. While a step runs, operator new serves them from fixed slots instead of the heap,
// so a step allocates nothing; outside of a step it is malloc as ever.
#pragma once

#include <cstdint>

namespace thimble {

// Calls may nest. Slots taken inside a step may be given back at any time.
void enter_step();
void leave_step();

// False under sanitizers, which want operator new for themselves, and inside of other programs,
// where it is not ours to replace.
bool library_heap_in_use();
// Requests since the process began that came inside a step and found no slot: too large, or more at
// once than there are slots. They were served by malloc.
int64_t library_heap_misses();

}  // namespace thimble
