// The model's tensors as somebody else knows them: by other names, with their axes in another
// order.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/model.h"
#include "weights/model_tensors.h"

namespace thimble {

struct OutsideTensor {
  ModelTensor tensor;
  std::string name;                // there
  std::vector<int64_t> axes = {};  // axis k here is axis axes[k] there; empty: as here

  bool turned() const { return !axes.empty(); }
};

// By whose names a model goes in and out: a net from outside goes back as it came.
std::optional<ForeignNames> names_outside(const Model& model);

// As it is there.
TensorType type_of(const OutsideTensor& outside, const Graph& graph);

// All that is to be given away: by our own names; or by theirs, under all of them and without
// constants.
std::vector<OutsideTensor> outside_tensors(const Graph& graph,
                                           const std::optional<ForeignNames>& foreign = {});
// All that is to be taken from there, with or without the prefix of their names.
std::vector<OutsideTensor> foreign_tensors(const Graph& graph, const ForeignNames& foreign,
                                           bool with_prefix);

// The bytes of a tensor that is `there`, in our order of axes.
std::vector<std::byte> as_ours(const OutsideTensor& outside, const TensorType& there,
                               std::span<const std::byte> bytes);

// All of its bytes, as they are there.
void read_outside_tensor(Program& program, const OutsideTensor& outside, std::span<std::byte> out);
void write_outside_tensor(Program& program, const OutsideTensor& outside,
                          std::span<const std::byte> in);

}  // namespace thimble
