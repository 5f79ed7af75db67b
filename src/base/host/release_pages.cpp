#include "base/host/release_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace thimble {

void release_pages(std::span<std::byte> range) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(range.data());
  const uintptr_t begin = (first + page - 1) / page * page;
  const uintptr_t end = (first + range.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace thimble
