// A handle of CUDA's or its libraries', destroyed with its owner. What destroying it says is passed
// over: a lost card fails that too, and has been reported by then.
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
