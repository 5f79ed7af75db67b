// A handle of CUDA's or its libraries', destroyed with its owner. Errors of its destruction are
// ignored: only a lost card fails there, and that has been reported by then.
#pragma once

#include <memory>
#include <type_traits>

namespace thimble {

template <auto kDestroy>
struct DestroyHandle {
  template <class Object>
  void operator()(Object* handle) const {
    static_cast<void>(kDestroy(handle));
  }
};

// The handle is a pointer, as all of theirs are.
template <class Handle, auto kDestroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, DestroyHandle<kDestroy>>;

}  // namespace thimble
