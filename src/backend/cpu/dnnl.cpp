#include "backend/cpu/dnnl.h"

#include <omp.h>

#include "base/error.h"

namespace thimble {

DnnlCall::DnnlCall(const dnnl::engine& engine, const dnnl::primitive& primitive,
                   std::span<const DnnlArgument> arguments)
    : primitive_(primitive), stream_(engine), team_(omp_get_max_threads()) {
  for (const DnnlArgument& argument : arguments) {
    memories_.push_back(dnnl::memory(argument.desc, engine, DNNL_MEMORY_NONE));
    arguments_.push_back({argument.name, memories_.back().get()});
  }
}

// The C interface: the C++ one builds a map of its arguments at every call.
void DnnlCall::run(std::initializer_list<const void*> addresses) {
  internal_check(addresses.size() == arguments_.size(), "wrong number of addresses");
  // A primitive splits its work among the threads that it was made for, and waits for all of them.
  internal_check(omp_get_max_threads() == team_ && omp_get_dynamic() == 0,
                 "a oneDNN primitive was handed another team than it was made for");
  auto address = addresses.begin();
  for (const dnnl_exec_arg_t& argument : arguments_) {
    dnnl_memory_set_data_handle(argument.memory, const_cast<void*>(*address++));
  }
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
  internal_check(status == dnnl_success, "a oneDNN primitive failed");
}

void check_countable(std::string_view op, std::initializer_list<int64_t> extents) {
  constexpr int64_t kMost = int64_t{1} << 30;
  for (const int64_t extent : extents) {
    user_check(
        extent <= kMost,
        "[{}] the CPU's kernels count to {}, not to {}; lower --batch, --microbatch, --image, "
        "--hidden or --classes, or plan with --device null",
        op, kMost, extent);
  }
}

dnnl::primitive_attr dnnl_attributes(bool add) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (add) {
    dnnl::post_ops after;
    after.append_sum(1.0f);
    attributes.set_post_ops(after);
  }
  return attributes;
}

DnnlCall dnnl_reorder(const dnnl::engine& engine, const dnnl::memory::desc& from,
                      const dnnl::memory::desc& to, bool add) {
  const dnnl::reorder::primitive_desc pd(engine, from, engine, to, dnnl_attributes(add));
  if (pd.scratchpad_desc().get_size() != 0) throw dnnl::error(dnnl_unimplemented, "scratchpad");
  return DnnlCall(engine, dnnl::reorder(pd), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

}  // namespace thimble
