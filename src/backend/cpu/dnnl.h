// oneDNN as our kernels use it: a primitive is built once, with its scratchpad in our workspace,
// and bound to addresses at every run. A call draws nothing from the heap but what library_heap
// holds.
#pragma once

#include <array>
#include <dnnl.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace thimble {

// Parts of a workspace, each on a cache line of its own.
class WorkspaceParts {
 public:
  // The offset of a new part.
  int64_t take(size_t bytes) {
    const int64_t at = total_.count;
    total_ = align_up(Bytes(at + static_cast<int64_t>(bytes)));
    return at;
  }
  Bytes total() const { return total_; }

 private:
  Bytes total_;
};

// REQUIRES: f32 or bf16.
constexpr dnnl::memory::data_type dnnl_type(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

struct DnnlArgument {
  int name;  // DNNL_ARG_...
  dnnl::memory::desc desc;
};

class DnnlCall {
 public:
  DnnlCall() = default;
  DnnlCall(const dnnl::engine& engine, const dnnl::primitive& primitive,
           std::span<const DnnlArgument> arguments);
  DnnlCall(const dnnl::engine& engine, const dnnl::primitive& primitive,
           std::initializer_list<DnnlArgument> arguments)
      : DnnlCall(engine, primitive, std::span(arguments.begin(), arguments.size())) {}

  // Addresses in the order of the arguments.
  void run(std::initializer_list<const void*> addresses);
  explicit operator bool() const { return !arguments_.empty(); }

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  int team_ = 0;  // threads that the primitive was made for
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

// oneDNN counts in int in many places and rounds extents up to whole blocks, so tensors that are
// larger than that end in its wild addresses. Throws UserError naming the op, the extent and what
// to lower.
void check_countable(std::string_view op, std::initializer_list<int64_t> extents);

// Attributes of every primitive of ours; `add`: the result is added to what is there.
dnnl::primitive_attr dnnl_attributes(bool add);

// A copy from one layout to another.
DnnlCall dnnl_reorder(const dnnl::engine& engine, const dnnl::memory::desc& from,
                      const dnnl::memory::desc& to, bool add);

// Whether an implementation takes memory of its own at every call: those on top of the library's
// gemm, which calls malloc.
inline bool draws_memory(const dnnl::primitive_desc_base& pd) {
  return std::string_view(pd.impl_info_str()).find("gemm") != std::string_view::npos;
}

// The first implementation of `operation` that draws no memory, unless only the plain loops are
// left then. next_impl() reads the operation and the hint (the forward primitive, for backward
// ones) where they lie, so both have to outlive the search: the caller holds them.
template <class Primitive, class... Hint>
typename Primitive::primitive_desc pick_implementation(const typename Primitive::desc& operation,
                                                       const dnnl::primitive_attr& attributes,
                                                       const dnnl::engine& engine,
                                                       const Hint&... hint) {
  const auto make = [&] {
    return typename Primitive::primitive_desc(operation, attributes, engine, hint...);
  };
  auto pick = make();
  while (draws_memory(pick)) {
    if (!pick.next_impl()) return make();
  }
  const bool plain = std::string_view(pick.impl_info_str()).find("ref") != std::string_view::npos;
  return plain ? make() : pick;
}

// Whether an implementation multiplies bf16 numbers by instructions for them.
inline bool multiplies_narrow(const dnnl::primitive_desc_base& pd) {
  const std::string_view name = pd.impl_info_str();
  return name.find("avx512_core_bf16") != std::string_view::npos ||
         name.find("amx") != std::string_view::npos;
}

// A new K, or null when oneDNN cannot do what it needs.
template <class K, class... Args>
std::unique_ptr<Kernel> make_if_supported(Args&&... args) {
  try {
    return std::make_unique<K>(std::forward<Args>(args)...);
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

// CpuKernel::make of such a K that takes every signature for which kFits holds.
template <class K, bool (*kFits)(const Signature&)>
std::unique_ptr<Kernel> make_if_supported_where(const Signature& signature) {
  return kFits(signature) ? make_if_supported<K>(signature) : nullptr;
}

}  // namespace thimble
