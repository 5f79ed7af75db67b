#include "support/interpreter.h"

#include "backend/backend.h"
#include "base/error.h"
#include "base/number/philox.h"

namespace thimble {
namespace {

Fill fill_of(const Value& value) {
  switch (value.init.kind) {
    case Init::Kind::zeros:
    case Init::Kind::constant:
    case Init::Kind::mask:
      return {Fill::Kind::zeros};
    case Init::Kind::normal:
      return {Fill::Kind::normal};
    case Init::Kind::uniform:
      return {Fill::Kind::uniform, -1, 1};
  }
  return {};
}

void initialise(Tensor& tensor, const Value& value, uint64_t seed) {
  fill_tensor(tensor, fill_of(value), seed ^ stable_hash(value.name));
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double drawn = tensor.get(i);
    tensor.set(
        i, value.init.kind == Init::Kind::constant ? value.init.scale : drawn * value.init.scale);
  }
}

}  // namespace

namespace {

// Runs the kernel on copies of its tensors in the device's memory, guards and all, at the same
// offsets from a page; and brings back whatever it wrote.
void run_remotely(Backend& backend, Kernel& kernel, KernelArgs args, Bytes scratch) {
  constexpr int64_t kPage = 4096;
  struct Copy {
    std::byte* host;  // from its guard on
    int64_t size, at;
  };
  std::vector<Copy> copies;
  int64_t end = 0;
  const auto place = [&](void* data, Bytes size) {
    std::byte* const host = static_cast<std::byte*>(data) - kTensorGuard;
    for (const Copy& copy : copies) {
      if (copy.host == host) return copy.at + kTensorGuard;
    }
    const int64_t total = size.count + 2 * kTensorGuard;
    const int64_t offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(host) % 1024) / 64 * 64;
    copies.push_back({host, total, end + offset});
    end += (offset + total + kPage - 1) / kPage * kPage + kPage;
    return copies.back().at + kTensorGuard;
  };
  std::vector<int64_t> inputs, outputs;
  for (const TensorRef& t : args.inputs) inputs.push_back(place(t.data, t.type.bytes()));
  for (const TensorRef& t : args.outputs) outputs.push_back(place(t.data, t.type.bytes()));
  const int64_t workspace = place(args.workspace, scratch);

  const auto memory = backend.allocate(Bytes(end));
  for (const Copy& copy : copies) {
    backend.copy_in(memory->base() + copy.at, {copy.host, static_cast<size_t>(copy.size)});
  }
  std::vector<TensorRef> remote_inputs, remote_outputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    remote_inputs.push_back({memory->base() + inputs[i], args.inputs[i].type});
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    remote_outputs.push_back({memory->base() + outputs[k], args.outputs[k].type});
  }
  args.inputs = remote_inputs;
  args.outputs = remote_outputs;
  args.workspace = memory->base() + workspace;
  kernel.run(args);
  backend.synchronise();
  for (const Copy& copy : copies) {
    backend.copy_out({copy.host, static_cast<size_t>(copy.size)}, memory->base() + copy.at);
  }
}

}  // namespace

void run_kernel(Backend* backend, const Signature& signature, KernelArgs args) {
  const OpDef& op = *signature.op;
  if (backend == nullptr || op.view) {
    const Bytes scratch = op.reference_workspace ? op.reference_workspace(signature) : Bytes();
    Tensor workspace(TensorType{{scratch.count}, DType::u8});
    args.workspace = workspace.bytes().data();
    op.reference(args);
    internal_check(workspace.guards_intact(), "a kernel wrote outside of its workspace");
    return;
  }
  Kernel& kernel = backend->kernel(signature);
  Tensor workspace(TensorType{{kernel.workspace.count}, DType::u8});
  args.workspace = workspace.bytes().data();
  if (backend->has_device_memory()) {
    run_remotely(*backend, kernel, args, kernel.workspace);
  } else {
    kernel.run(args);
    backend->synchronise();
  }
  internal_check(workspace.guards_intact(), "a kernel wrote outside of its workspace");
}

void run_node(const Graph& graph, NodeId id, std::vector<Tensor>& values, Backend* backend) {
  const Node& node = graph[id];
  const Signature signature = signature_of(graph, id);
  std::vector<TensorRef> inputs, outputs;
  for (const ValueId input : node.inputs) inputs.push_back(values[input.at()].ref());
  for (const ValueId output : node.outputs) outputs.push_back(values[output.at()].ref());
  KernelArgs args;
  args.attrs = &node.attrs;
  args.inputs = inputs;
  args.outputs = outputs;
  args.accumulate = signature.accumulate;
  run_kernel(backend, signature, args);
  for (const ValueId output : node.outputs) {
    internal_check(values[output.at()].guards_intact(),
                   fmt::format("[{}] wrote outside of '{}'", node.op->name, graph[output].name));
  }
}

Interpreter::Interpreter(const Graph& graph, Backend* backend, uint64_t seed)
    : graph_(graph), backend_(backend), previous_(previous_versions(graph)) {
  for (const Value& value : graph.values) {
    Tensor& tensor = values_.emplace_back(value.type);
    if (!value.producer.valid()) initialise(tensor, value, seed);
  }
}

void Interpreter::run_versioned(NodeId id) {
  for (const ValueId output : graph_[id].outputs) {
    const ValueId before = previous_[output.at()];
    if (before.valid()) values_[output.at()] = Tensor(values_[before.at()]);
  }
  run_node(graph_, id, values_, backend_);
}

void Interpreter::run_phase(Phase phase) {
  if (phase == Phase::per_microbatch && microbatches_++ > 0) {
    carry([](const Graph& graph, ValueId value) {
      const NodeId producer = graph[value].producer;
      return producer.valid() && graph[producer].phase == Phase::per_microbatch;
    });
  }
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (graph_.nodes[n].phase == phase) run_versioned(make_id<NodeId>(n));
  }
}

void Interpreter::run() {
  for (const Phase phase : {Phase::prologue, Phase::per_microbatch, Phase::epilogue})
    run_phase(phase);
}

void Interpreter::commit() {
  carry([](const Graph& graph, ValueId value) { return graph[value].producer.valid(); });
  microbatches_ = 0;
}

void Interpreter::carry(bool (*made_here)(const Graph& graph, ValueId value)) {
  // Later versions come later, so the newest is copied last.
  for (const Node& node : graph_.nodes) {
    for (const ValueId output : node.outputs) {
      if (!made_here(graph_, output)) continue;
      ValueId oldest = output;
      while (oldest.valid() && made_here(graph_, oldest)) oldest = previous_[oldest.at()];
      if (oldest.valid()) values_[oldest.at()] = Tensor(values_[output.at()]);
    }
  }
}

}  // namespace thimble
