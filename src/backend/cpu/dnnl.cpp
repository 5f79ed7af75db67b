#include "backend/cpu/dnnl.h"

#include "base/error.h"

namespace thimble {

DnnlCall::DnnlCall(const dnnl::engine& engine, const dnnl::primitive& primitive,
                   std::span<const DnnlArgument> arguments)
    : primitive_(primitive), stream_(engine) {
  for (const DnnlArgument& argument : arguments) {
    memories_.push_back(dnnl::memory(argument.desc, engine, DNNL_MEMORY_NONE));
    arguments_.push_back({argument.name, memories_.back().get()});
  }
}

// The C interface: the C++ one builds a map of its arguments at every call.
void DnnlCall::run(std::initializer_list<const void*> addresses) {
  internal_check(addresses.size() == arguments_.size(), "wrong number of addresses");
  auto address = addresses.begin();
  for (const dnnl_exec_arg_t& argument : arguments_) {
    dnnl_memory_set_data_handle(argument.memory, const_cast<void*>(*address++));
  }
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
  internal_check(status == dnnl_success, "a oneDNN primitive failed");
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
