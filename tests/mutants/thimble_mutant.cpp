#include "base/thimble_mutant.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace thimble_mutants {

int chosen = -1;
unsigned char* reached = nullptr;

namespace {

constexpr size_t kMost = 65536;

// Before everything else: tables may be filled by code that has faults in it.
__attribute__((constructor(101))) void read_environment() {
  const char* const number = std::getenv("THIMBLE_MUTANT");
  if (number != nullptr) chosen = std::atoi(number);
  const char* const path = std::getenv("THIMBLE_MUTANT_REACHED");
  if (path == nullptr) return;
  const int file = open(path, O_RDWR);
  if (file < 0) return;
  void* const bytes = mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (bytes != MAP_FAILED) reached = static_cast<unsigned char*>(bytes);
}

}  // namespace
}  // namespace thimble_mutants
