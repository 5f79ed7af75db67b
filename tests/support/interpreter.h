// Runs a graph slowly and obviously: nodes in order, every value in a buffer of its own, the next
// version of a value copied from the one before. Nothing shares bytes, so it is the oracle for
// planners and executors.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "support/tensor.h"

namespace thimble {

class Backend;

// Runs one kernel call, with scratch of the size it asks for. Null backend: the reference kernel.
// Views are always copied.
void run_kernel(Backend* backend, const Signature& signature, KernelArgs args);

// Runs a node on `values`, by value index: those it adds into hold what is added to. Throws
// InternalError when its kernel wrote outside of its outputs.
void run_node(const Graph& graph, NodeId node, std::vector<Tensor>& values,
              Backend* backend = nullptr);

class Interpreter {
 public:
  // Values without a producer start as their Init says; inputs start as zeros. `graph` and
  // `backend` outlive the interpreter.
  explicit Interpreter(const Graph& graph, Backend* backend = nullptr, uint64_t seed = 0);

  Tensor& operator[](ValueId value) { return values_[value.at()]; }
  const Tensor& operator[](ValueId value) const { return values_[value.at()]; }
  // By value index.
  const std::vector<Tensor>& values() const { return values_; }
  // The same, when nothing more is run.
  std::vector<Tensor> take_values() { return std::move(values_); }

  // A whole step of one microbatch.
  void run();
  // Or phase by phase: begin, each (once per microbatch, inputs set in between), end.
  void run_phase(Phase phase);
  // After a step: persistent values take over what their last versions are, ready for another step.
  void commit();

 private:
  void run_versioned(NodeId node);
  // The newest version of each value that is `made_here` takes the place of the oldest that is
  // not: what sharing their bytes would do.
  void carry(bool (*made_here)(const Graph& graph, ValueId value));

  const Graph& graph_;
  Backend* backend_;
  std::vector<Tensor> values_;
  std::vector<ValueId> previous_;
  int microbatches_ = 0;  // since the last commit
};

}  // namespace thimble
