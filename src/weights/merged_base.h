// Adapters merged into the weights that they are beside: W + scale * B A, as the base's own files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graph/graph.h"
#include "model/model.h"
#include "transform/fine_tuning.h"

namespace thimble {

// The adapters of a checkpoint, and the base that it names.
struct AdaptedBase {
  const Graph& graph;
  const std::optional<ForeignNames>& foreign;
  AdapterSpec spec;
  std::string base;      // a file of safetensors, or an index of several
  std::string adapters;  // the checkpoint's weights, by our own names
};

// Of a checkpoint; `run` is what messages call it. UserError where its base came from no file.
AdaptedBase adapted_base(const Model& model, const AdapterSpec& spec, const std::string& checkpoint,
                         const std::string& run);

// Makes the folder, with the base's files under their names. Adapted weights are summed in f32 and
// rounded once to the type that the file has them in, every other byte is as it was. Beside an
// index or a config.json, settings and tokenizer come along. Rows of one tensor are in memory at a
// time. Returns how many weights were merged. UserError where the folder is there already, or the
// base is in 4 bits, or of other shapes; no folder is left then.
int64_t merge_adapters(const AdaptedBase& from, const std::string& folder);

}  // namespace thimble
