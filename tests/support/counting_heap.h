// malloc and its kin replaced by ones that count. Include in exactly one file of an executable: it
// defines them. Under sanitizers, which want the heap for themselves, nothing is replaced.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace thimble {

inline std::atomic<bool> g_counting_allocations{false};
inline std::atomic<int64_t> g_allocations{0};

inline void note_allocation() {
  if (g_counting_allocations.load(std::memory_order_relaxed)) g_allocations.fetch_add(1);
}

// Allocations of all threads while `body` runs.
template <class Body>
int64_t allocations_in(Body&& body) {
  g_allocations = 0;
  g_counting_allocations = true;
  body();
  g_counting_allocations = false;
  return g_allocations;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kHeapIsCounted = false;
#else
inline constexpr bool kHeapIsCounted = true;
#endif

}  // namespace thimble

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* pointer, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  thimble::note_allocation();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  thimble::note_allocation();
  return __libc_calloc(count, size);
}
void* realloc(void* pointer, size_t size) {
  thimble::note_allocation();
  return __libc_realloc(pointer, size);
}
void* memalign(size_t alignment, size_t size) {
  thimble::note_allocation();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  thimble::note_allocation();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** pointer, size_t alignment, size_t size) {
  thimble::note_allocation();
  *pointer = __libc_memalign(alignment, size);
  return *pointer == nullptr ? ENOMEM : 0;
}
}
#endif
