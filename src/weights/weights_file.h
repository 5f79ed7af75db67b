// The model as one safetensors file, for other programs and from them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "execute/program.h"
#include "model/model.h"

namespace thimble {

// Loads weights (and, where present, statistics) from any safetensors file that holds this model's,
// or from the shards of an index (weights/safetensors_shards.h). Sparse weights take what lies at
// their nonzeros; other tensors are left out. Numbers of another floating type are rounded to the
// model's, to nearest. Returns how many tensors were either, in words ("6 tensors of f16 became
// f32"); empty: none. UserError where a tensor is missing, has another shape, or has a number that
// the model's type does not reach. A file of the program that `foreign` names is known by its
// names. A folder of PEFT (weights/adapter_file.h) has adapters alone.
std::string load_weights(const std::string& path, Program& program,
                         const std::optional<ForeignNames>& foreign = {});

// Weights and statistics as one safetensors file, sparse weights in full; as another program has
// them, where `foreign` is given. `coded`: what is in 4 bits goes as bitsandbytes stores it, and
// not as the numbers that it stands for. Of several ranks all call it, and the first writes.
void save_weights(const std::string& path, Program& program,
                  const std::optional<ForeignNames>& foreign = {}, bool coded = false);

// The bytes of a tensor of the other program's, by its name there, from byte `begin` on: floating numbers
// as f32.
using GiveValues =
    std::function<void(const std::string& name, int64_t begin, std::span<std::byte> out)>;

// First values of everything that is kept: of a net from outside those that came with it, else drawn
// from the seed. `give`, where there is one, stands in for the file of a net from outside: it is asked
// for each tensor once, in pieces, one tensor after the other.
void set_first_values(Program& program, const Model& model, uint64_t seed,
                      const GiveValues& give = {});

// Over names, types and bytes of all weights and statistics, in graph order, sparse weights in
// full.
std::string weights_sha256(Program& program);

// The metadata of a file of this model.
std::map<std::string, std::string> model_metadata(const Graph& graph);

}  // namespace thimble
