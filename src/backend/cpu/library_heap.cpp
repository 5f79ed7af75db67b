#include "backend/cpu/library_heap.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace thimble {
namespace {

constexpr size_t kSlotBytes = 512;
constexpr size_t kSlots = 128;
constexpr size_t kSlotAlignment = 64;

std::atomic<int> g_steps{0};
std::atomic<int64_t> g_misses{0};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool kInUse = true;

struct alignas(kSlotAlignment) Slot {
  std::byte bytes[kSlotBytes];
};

Slot g_slots[kSlots];
// The free slots as a stack of links, each naming the next by number + 1; 0 ends it. Links lie
// outside the slots, so a late reader never reads bytes that a caller owns.
std::array<std::atomic<uint32_t>, kSlots> g_next;
// The upper half counts changes: a top that was popped and pushed back is seen to be another one.
std::atomic<uint64_t> g_top{0};
// Slots at and above this number were never used, so nothing has to be set up.
std::atomic<uint32_t> g_fresh{0};

uint64_t with_next_count(uint64_t top, uint32_t slot) { return ((top >> 32) + 1) << 32 | slot; }

void* take_slot() {
  uint64_t top = g_top.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(top) != 0) {
    const uint32_t slot = static_cast<uint32_t>(top) - 1;
    const uint32_t next = g_next[slot].load(std::memory_order_relaxed);
    if (g_top.compare_exchange_weak(top, with_next_count(top, next), std::memory_order_acq_rel)) {
      return &g_slots[slot];
    }
  }
  if (g_fresh.load(std::memory_order_relaxed) < kSlots) {
    const uint32_t slot = g_fresh.fetch_add(1, std::memory_order_relaxed);
    if (slot < kSlots) return &g_slots[slot];
    g_fresh.store(kSlots, std::memory_order_relaxed);
  }
  return nullptr;
}

bool give_back_slot(void* pointer) {
  const auto offset =
      reinterpret_cast<uintptr_t>(pointer) - reinterpret_cast<uintptr_t>(&g_slots[0]);
  if (offset >= sizeof(g_slots)) return false;
  const auto slot = static_cast<uint32_t>(offset / sizeof(Slot));
  uint64_t top = g_top.load(std::memory_order_relaxed);
  do {
    g_next[slot].store(static_cast<uint32_t>(top), std::memory_order_relaxed);
  } while (
      !g_top.compare_exchange_weak(top, with_next_count(top, slot + 1), std::memory_order_acq_rel));
  return true;
}

void* allocate(size_t size, size_t alignment) {
  if (g_steps.load(std::memory_order_relaxed) > 0) {
    if (size <= kSlotBytes && alignment <= kSlotAlignment) {
      if (void* slot = take_slot()) return slot;
    }
    g_misses.fetch_add(1, std::memory_order_relaxed);
  }
  if (size == 0) size = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size);
  void* pointer = nullptr;
  return posix_memalign(&pointer, alignment, size) == 0 ? pointer : nullptr;
}

void* allocate_or_throw(size_t size, size_t alignment) {
  while (true) {
    if (void* pointer = allocate(size, alignment)) return pointer;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void release(void* pointer) {
  if (pointer != nullptr && !give_back_slot(pointer)) std::free(pointer);
}
#else
constexpr bool kInUse = false;
#endif

// Whether the whole process calls the operators below. Inside libthimble.so they are the library's own:
// then nothing but malloc is safe, since what it makes, others may give back.
bool serves_the_process() {
  static const bool serves = [] {
    void* (*const own)(size_t) = &::operator new;
    return dlsym(RTLD_DEFAULT, "_Znwm") == reinterpret_cast<void*>(own);
  }();
  return serves;
}

}  // namespace

void enter_step() {
  if (library_heap_in_use()) g_steps.fetch_add(1, std::memory_order_relaxed);
}
void leave_step() {
  if (library_heap_in_use()) g_steps.fetch_sub(1, std::memory_order_relaxed);
}
bool library_heap_in_use() { return kInUse && serves_the_process(); }
int64_t library_heap_misses() { return g_misses.load(std::memory_order_relaxed); }

}  // namespace thimble

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
using thimble::allocate;
using thimble::allocate_or_throw;
using thimble::release;

namespace {
constexpr size_t kUsual = alignof(std::max_align_t);
}

void* operator new(size_t size) { return allocate_or_throw(size, kUsual); }
void* operator new[](size_t size) { return allocate_or_throw(size, kUsual); }
void* operator new(size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size, kUsual); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return allocate(size, kUsual); }
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(alignment));
}

void operator delete(void* pointer) noexcept { release(pointer); }
void operator delete[](void* pointer) noexcept { release(pointer); }
void operator delete(void* pointer, size_t) noexcept { release(pointer); }
void operator delete[](void* pointer, size_t) noexcept { release(pointer); }
void operator delete(void* pointer, std::align_val_t) noexcept { release(pointer); }
void operator delete[](void* pointer, std::align_val_t) noexcept { release(pointer); }
void operator delete(void* pointer, size_t, std::align_val_t) noexcept { release(pointer); }
void operator delete[](void* pointer, size_t, std::align_val_t) noexcept { release(pointer); }
void operator delete(void* pointer, const std::nothrow_t&) noexcept { release(pointer); }
void operator delete[](void* pointer, const std::nothrow_t&) noexcept { release(pointer); }
void operator delete(void* pointer, std::align_val_t, const std::nothrow_t&) noexcept {
  release(pointer);
}
void operator delete[](void* pointer, std::align_val_t, const std::nothrow_t&) noexcept {
  release(pointer);
}
#endif
