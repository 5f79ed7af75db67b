// Whether a planted fault is the one that the environment names: THIMBLE_MUTANT=17. tools/mutate puts this
// into a copy of the sources, never into these.
#pragma once

#include <type_traits>

namespace thimble_mutants {
extern int chosen;  // none: -1
extern unsigned char*
    reached;  // by number, shared with the processes that a test starts; null: not asked
}  // namespace thimble_mutants

constexpr bool thimble_mutant(int number) {
  if (std::is_constant_evaluated()) return false;
  if (thimble_mutants::reached != nullptr) thimble_mutants::reached[number] = 1;
  return thimble_mutants::chosen == number;
}
