// Staging memory for inputs and results of a program whose arena the host cannot reach. Copies are
// queued in the order of the kernels.
//
//   host   fill A0   fill A1     fill A0 again (when the device has copied it) ...
//   device      A0 -> arena, kernels     A1 -> arena, kernels ...
//
// Inputs of micro-batches have two slots (double buffering): the host writes the next micro-batch
// while the device works on this one.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "graph/graph.h"

namespace thimble {

class StagingBuffers {
 public:
  // `homes`: by value, its address in the arena.
  StagingBuffers(const Graph& graph, const std::vector<Bytes>& homes, Backend& backend,
                 Memory& arena);

  bool has(ValueId value) const { return place_[value.at()] >= 0; }
  // REQUIRES: has(value). Of an input, the bytes that the next upload copies. A small one (scalars)
  // still has its last contents, others have any.
  std::span<std::byte> bytes_of(ValueId value) const;

  // Queues copies of the inputs that nodes of the phase read.
  void upload(Phase phase);
  // Queues copies of the results.
  void download();

 private:
  struct Place {
    std::byte* device = nullptr;
    int64_t offset = 0;  // in a slot, or in the results
    size_t size = 0;
    bool input = false;
    std::array<bool, 3> read_in{};  // by phase
  };

  std::byte* slot(int number) const { return memory_->base() + number * slot_size_; }

  Backend& backend_;
  std::vector<int> place_;  // by value; -1: none
  std::vector<Place> places_;
  std::unique_ptr<Memory> memory_;  // slot 0, slot 1, results
  int64_t slot_size_ = 0;
  std::array<std::unique_ptr<Event>, 2> copied_;
  int current_ = 0;
};

}  // namespace thimble
